// Package dashboard serves a page that shows, live, what one proxy decides: which limit denies
// whom and why, how long decisions take, and the state of the store. It has no build step and
// loads nothing from elsewhere. One sampler reads the proxy once a second, however many pages are
// open, and pages read only: nothing that a browser sends changes the proxy.
package dashboard
