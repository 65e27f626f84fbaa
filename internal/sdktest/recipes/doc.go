// Package recipes holds the code of the pages in docs/sdk: clients of real SDKs whose
// calls wait. Tests run each of them before a vendor, and write the table of the index.
// A line that ends in "// +" is one that a user adds or changes.
package recipes
