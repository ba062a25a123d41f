package redisauth

import "context"

// File supplies the password of a file, which each new connection reads. It is safe for
// concurrent use.
type File struct {
	User string // empty for the default user
	// Read returns the content of the file.
	Read func() (password string, err error)
}

// Credentials returns the user and the present content of the file.
func (f *File) Credentials(context.Context) (user, password string, err error) {
	password, err = f.Read()
	return f.User, password, err
}

// Refused reports whether the file has another password by now.
func (f *File) Refused(_ context.Context, password string) (retry bool) {
	now, err := f.Read()
	return err == nil && now != password
}
