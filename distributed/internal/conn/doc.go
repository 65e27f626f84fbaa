// Package conn is a store's way to Redis: a client that sends no command twice ([New]), scripts run
// by it ([Client.Run]), the servers as nodes that are lost and come back ([Node]), and why a call
// failed ([CauseOf]). It knows no limits.
package conn
