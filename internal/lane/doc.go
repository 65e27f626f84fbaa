// Package lane holds the lanes of a client: one queue over one limiter for each key,
// in bounded tables, with what a lane knows of its server beside them. It knows
// nothing of HTTP and of telemetry, which its owner's [Observer] does.
//
// In front of the store's limiter stands a lane's gate. It is closed after a long
// pause, and holds calls to what a [Course] has learned from their answers.
package lane
