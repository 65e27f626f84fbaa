// Package sim plays vendors, the way to them and the demand in virtual time, to try
// what package learn learns of them.
package sim
