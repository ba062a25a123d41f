// Package accesslog reads web servers' access logs, so that the traffic they
// record can be replayed through a rate limiter.
//
// [Reader] yields one [Entry] a line from a plain or gzip-compressed log in
// Common or Combined Log Format, as Apache httpd and nginx write them, in JSON,
// or as Envoy, Application Load Balancers, CloudFront and IIS write them. The
// beginning of each line tells its format.
// [Template] turns an entry into the word a limiter counts by, for example
// "GET /presentations/logstash-monitorama-2013". [Progress] shows on a
// terminal how far the reading is.
//
// The log is untrusted input: whatever it contains, memory stays bounded, and
// what the package hands out for printing, the text of its errors and of
// expanded templates, holds no control characters. The fields of an Entry are
// the exception, they hold what the client sent.
package accesslog
