// Package tablemodel tests a table of limits with the control planes and proxies that follow
// it, in made up time: random histories of writes, restores, faults and forgeries, after which
// every proxy enforces what a reading of the table says, or says that it may not.
package tablemodel
