// Package redisauth supplies the user and the password of connections to Redis: from a file,
// from AWS Secrets Manager, or as a token of AWS IAM. No password is in an error or a log line.
package redisauth
