// Package browser opens the page of a limitgate in a browser, and has only tests. It is a module
// of its own, so that a browser's protocol is no dependency of Limitgate.
package browser
