// Package users checks passwords and rights of clients against the users of a file.
//
// The file has the grammar of Redis's ACL files, see https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/,
// with groups of commands that fit Limitgate, and with comments. The file has hashes and no
// passwords; errors do not repeat the words of a rule in which somebody may have written one.
package users
