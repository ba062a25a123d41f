// Package emf writes counts of decisions in CloudWatch's embedded metric format: once a second, as
// lines that CloudWatch makes metrics of. It reads counters that exist anyway, so that no decision
// costs more with it.
package emf
