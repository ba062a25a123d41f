// Package users checks passwords and rights of clients against the users of a file.
//
// The file has the grammar of Redis's ACL files, see https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/,
// with groups of commands that fit Limitgate, and with comments. No password is ever in the
// file, in an error or in a log line: the file has hashes.
package users
