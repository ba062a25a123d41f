package emftest

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"unicode/utf8"
)

// schema is a JSON schema with the keywords that the schema of the format uses.
type schema struct {
	Comment    string             `json:"$comment"`
	Type       string             `json:"type"`
	Required   []string           `json:"required"`
	Properties map[string]*schema `json:"properties"`
	// Additional, unless nil, is false: no other members are allowed.
	Additional *bool     `json:"additionalProperties"`
	Items      *schema   `json:"items"`
	MinItems   int       `json:"minItems"`
	MaxItems   *int      `json:"maxItems"`
	MinLength  int       `json:"minLength"`
	MaxLength  *int      `json:"maxLength"`
	Pattern    string    `json:"pattern"`
	Enum       []float64 `json:"enum"`

	pattern *regexp.Regexp
}

// compile compiles all patterns.
func (s *schema) compile() {
	if s == nil {
		return
	}
	s.pattern = regexp.MustCompile(s.Pattern)
	s.Items.compile()
	for _, p := range s.Properties {
		p.compile()
	}
}

// check returns an error unless a value meets the schema. At is its place.
func (s *schema) check(at string, value any) error {
	switch v := value.(type) {
	case map[string]any:
		if s.Type != "object" {
			break
		}
		return s.checkObject(at, v)
	case []any:
		if s.Type != "array" {
			break
		}
		return s.checkArray(at, v)
	case string:
		if s.Type != "string" {
			break
		}
		n := utf8.RuneCountInString(v)
		if n < s.MinLength || s.MaxLength != nil && n > *s.MaxLength || !s.pattern.MatchString(v) {
			return fmt.Errorf("%s is %.100q", at, v)
		}
		return nil
	case float64:
		if s.Type != "integer" || v != math.Trunc(v) || len(s.Enum) > 0 && !slices.Contains(s.Enum, v) {
			break
		}
		return nil
	}
	return fmt.Errorf("%s is %v", at, value)
}

func (s *schema) checkObject(at string, members map[string]any) error {
	for _, name := range s.Required {
		if _, found := members[name]; !found {
			return fmt.Errorf("%s has no %s", at, name)
		}
	}
	for name, value := range members {
		rules := s.Properties[name]
		if rules == nil {
			if s.Additional != nil && !*s.Additional {
				return fmt.Errorf("%s has %s", at, name)
			}
			continue
		}
		if err := rules.check(at+"."+name, value); err != nil {
			return err
		}
	}
	return nil
}

func (s *schema) checkArray(at string, items []any) error {
	if len(items) < s.MinItems || s.MaxItems != nil && len(items) > *s.MaxItems {
		return fmt.Errorf("%s has %d items", at, len(items))
	}
	for i, item := range items {
		if err := s.Items.check(fmt.Sprintf("%s[%d]", at, i), item); err != nil {
			return err
		}
	}
	return nil
}
