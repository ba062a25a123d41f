package capacity

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// decode decodes the JSON of a file into a struct. It refuses unknown and repeated fields. The error names the
// line, and ends with the sentence wanted, about the right file.
func decode(content []byte, into any, wanted string) error {
	if !jsontext.Value(content).IsValid(jsontext.AllowDuplicateNames(true)) {
		return errors.New("this is no JSON: " + wanted)
	}
	err := json.Unmarshal(content, into, json.RejectUnknownMembers(true))
	var wrong *json.SemanticError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &wrong):
		return fmt.Errorf("line %d: %s: %s", lineOf(content, wrong.ByteOffset), mistake(wrong), wanted)
	case errors.As(err, &syntax) && errors.Is(err, jsontext.ErrDuplicateName):
		return fmt.Errorf("line %d: the field %.32q is there twice in one object: %s", lineOf(content, syntax.ByteOffset), syntax.JSONPointer.LastToken(), wanted)
	}
	return err
}

// lineOf returns the line of the first byte of a value at or behind an offset.
func lineOf(content []byte, offset int64) int {
	at := min(int(offset), len(content))
	at += len(content[at:]) - len(bytes.TrimLeft(content[at:], " \t\r\n,:"))
	return 1 + bytes.Count(content[:at], []byte("\n"))
}

// mistake describes a field that does not fit its struct.
func mistake(err *json.SemanticError) string {
	name := err.JSONPointer.LastToken()
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return fmt.Sprintf("there is no field %.32q, the fields are %s", name, strings.Join(fieldsOf(err.GoType), ", "))
	case err.JSONPointer == "":
		return "an object with the fields " + strings.Join(fieldsOf(err.GoType), ", ") + " is wanted"
	}
	return fmt.Sprintf("%s must be %s", strings.TrimPrefix(string(err.JSONPointer), "/"), kindOf(err.GoType))
}

// fieldsOf returns the names of the fields of a struct in JSON.
func fieldsOf(of reflect.Type) (names []string) {
	if of == nil || of.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(of) {
		names = append(names, f.Tag.Get("json"))
	}
	return names
}

// kindOf returns the form in JSON of the values of a type.
func kindOf(of reflect.Type) string {
	if of == nil {
		return "another type"
	}
	switch of.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}
