// Package sdktest tries real SDKs and retrying clients over a Transport. It is a
// module of its own, so that Weir depends on none of them.
package sdktest
