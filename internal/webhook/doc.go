// Package webhook delivers events to an HTTP endpoint, signed as Standard Webhooks 1.0.0 says
// (https://www.standardwebhooks.com): one at a time, in order, and again after trouble. Events wait
// in a bounded queue, so that a slow endpoint makes nothing else wait.
package webhook
