package rlsconfig

import (
	"fmt"

	"github.com/limitgate/limitgate/config"
)

// ReadExtensions returns the content of a file of extensions, and nothing of one without a name.
func ReadExtensions(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	content, err := config.ReadFile(name, config.MaxRLSExtensionsBytes)
	if err != nil {
		return nil, fmt.Errorf("read extensions: %w", err)
	}
	return content, nil
}

// WithExtensions returns options with the extensions that a file has, and without any if it has no name.
// The error has a line for each mistake.
func (o Options) WithExtensions(name string, content []byte) (Options, error) {
	o.Extensions = nil
	if name == "" {
		return o, nil
	}
	var err error
	o.Extensions, err = config.ParseRLSExtensions(name, content)
	return o, err
}
