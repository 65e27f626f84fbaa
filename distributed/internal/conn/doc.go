// Package conn is a store's connection to Redis. A client sends each command once ([New]) and runs
// scripts ([Client.Run]). The servers are nodes that are lost and come back ([Node]). [CauseOf]
// returns why a call failed. The package knows no limits.
package conn
