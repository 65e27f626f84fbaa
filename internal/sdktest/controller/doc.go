// Package recipes tries the recipe of a reconciler under the real controller-runtime. Its build
// takes minutes, so it is a module of its own, which .ci/compat tests and .ci/run leaves out.
package recipes
