package weir

// Version is the version of this module. It is the version of the instrumentation scope of
// all spans and metrics.
const Version = "0.1.0"
