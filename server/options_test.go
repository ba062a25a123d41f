package server

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestDefaultOptionsAreValid(t *testing.T) {
	for _, o := range []Options{{}, DefaultOptions(), {MaxBulk: 2 << 20}} {
		if err := o.Validate(); err != nil {
			t.Error(err)
		}
	}
	if got := (Options{KeepAlive: 300 * time.Second}).withDefaults(); !reflect.DeepEqual(got, DefaultOptions()) {
		t.Errorf("zero options stand for %+v", got)
	}
}

func TestValidateNamesEveryField(t *testing.T) {
	o := Options{
		MaxConns: -1, IdleTimeout: -1, MaxAge: -1, KeepAlive: -1, RequestTimeout: -1, WriteTimeout: -1,
		MaxBulk: 1 << 30, MaxArgs: 1 << 30, MaxRequest: 5, MaxInline: -1, MaxBuffered: 1, ShutdownTimeout: -time.Second,
	}
	err := o.Validate()
	if err == nil || !strings.HasPrefix(err.Error(), "check server options: ") {
		t.Fatalf("Validate: %v", err)
	}
	for _, field := range []string{
		"MaxConns", "IdleTimeout", "MaxAge", "KeepAlive", "RequestTimeout", "WriteTimeout",
		"MaxBulk", "MaxArgs", "MaxRequest", "MaxInline", "MaxBuffered", "ShutdownTimeout",
	} {
		if !strings.Contains(err.Error(), field+" must ") {
			t.Errorf("error does not name %s: %v", field, err)
		}
	}
}
