// SPDX-License-Identifier: Apache-2.0

package oldfile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Value is what a file says of a name: one text, or those of a list.
type Value struct {
	texts  []string
	isList bool
}

// Setter takes a value. Its error says what is wanted instead; Read puts the place in front.
type Setter func(Value) error

// Read hands each value in data, the contents of the file called name, to the setter of its name. Several errors are joined.
func Read(name string, data []byte, setters map[string]Setter) error {
	r, seen, errs := &reader{rest: string(data), line: 1}, map[string]bool{}, []error{}
	for r.skip(true); r.rest != ""; r.skip(true) {
		line := r.line
		key, value, err := r.entry()
		setter := setters[key]
		switch {
		case err != nil:
		case seen[key]:
			err = fmt.Errorf("%s: comes twice", key)
		case setter == nil:
			err = fmt.Errorf("%s: is not known; known are %s", key, strings.Join(slices.Sorted(maps.Keys(setters)), ", "))
		default:
			if err = setter(value); err != nil {
				err = fmt.Errorf("%s: %w", key, err)
			}
		}
		seen[key] = true
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", name, line, err))
		}
	}
	return errors.Join(errs...)
}

// Text sets a text.
func Text(into *string) Setter {
	return func(v Value) (err error) {
		*into, err = v.one("a text")
		return err
	}
}

// List sets a list of texts. One text is a list of one.
func List(into *[]string) Setter {
	return func(v Value) error {
		*into = v.texts
		return nil
	}
}

// Bool sets what is true or false.
func Bool(into *bool) Setter {
	return func(v Value) error {
		text, err := v.one("true or false")
		if err == nil {
			*into, err = strconv.ParseBool(text)
		}
		if err != nil {
			return fmt.Errorf("%q: want true or false", text)
		}
		return nil
	}
}

// Quantity sets an amount.
func Quantity(into *resource.Quantity) Setter {
	return func(v Value) error {
		text, err := v.one("an amount")
		if err != nil {
			return err
		}
		if *into, err = resource.ParseQuantity(text); err != nil {
			return fmt.Errorf("%q: want an amount, such as 20 or 100Gi", text)
		}
		return nil
	}
}

// Resource sets the amount of a resource.
func Resource(list corev1.ResourceList, name corev1.ResourceName) Setter {
	return func(v Value) error {
		var q resource.Quantity
		err := Quantity(&q)(v)
		list[name] = q
		return err
	}
}

// Linux refuses other operating systems.
func Linux(v Value) error {
	if text, err := v.one("Linux"); err != nil || text != "Linux" {
		return fmt.Errorf("%q: pods of this provider run on Linux", text)
	}
	return nil
}

// Ignore takes every value, of a name that had no effect before either.
func Ignore(Value) error { return nil }

// Gone refuses every value, and says what to do.
func Gone(instead string) Setter { return func(Value) error { return errors.New(instead) } }

func (v Value) one(want string) (string, error) {
	if v.isList || len(v.texts) != 1 {
		return "", fmt.Errorf("want %s, not a list", want)
	}
	return v.texts[0], nil
}

// reader goes through a file.
type reader struct {
	rest string
	line int
}

// skip goes over blanks and comments, and over ends of lines too if that is wanted.
func (r *reader) skip(lines bool) {
	for r.rest != "" {
		switch c := r.rest[0]; {
		case c == '#':
			r.restOfLine()
		case c == '\n' && lines:
			r.line++
			r.rest = r.rest[1:]
		case c == ' ' || c == '\t' || c == '\r':
			r.rest = r.rest[1:]
		default:
			return
		}
	}
}

// restOfLine takes everything before the end of the line.
func (r *reader) restOfLine() string {
	i := strings.IndexByte(r.rest, '\n')
	if i < 0 {
		i = len(r.rest)
	}
	text := r.rest[:i]
	r.rest = r.rest[i:]
	return text
}

// entry reads a name and its value. After an error it goes on with the next line.
func (r *reader) entry() (key string, v Value, err error) {
	key = r.until(" \t=\n")
	r.skip(false)
	if key == "" || !strings.HasPrefix(r.rest, "=") {
		r.restOfLine()
		return "", v, errors.New(`want a line such as Region = "westeurope", or a file with apiVersion and kind`)
	}
	r.rest = r.rest[1:]
	r.skip(false)
	if v, err = r.value(); err == nil {
		if r.skip(false); r.rest != "" && r.rest[0] != '\n' {
			err = errors.New("want nothing after the value")
		}
	}
	r.restOfLine()
	if err != nil {
		err = fmt.Errorf("%s: %w", key, err)
	}
	return key, v, err
}

func (r *reader) value() (Value, error) {
	if !strings.HasPrefix(r.rest, "[") {
		text, err := r.scalar()
		return Value{texts: []string{text}}, err
	}
	v := Value{isList: true, texts: []string{}}
	r.rest = r.rest[1:]
	for {
		r.skip(true)
		if strings.HasPrefix(r.rest, "]") {
			r.rest = r.rest[1:]
			return v, nil
		}
		text, err := r.scalar()
		if err != nil {
			return v, err
		}
		v.texts = append(v.texts, text)
		switch r.skip(true); {
		case strings.HasPrefix(r.rest, ","):
			r.rest = r.rest[1:]
		case !strings.HasPrefix(r.rest, "]"):
			return v, errors.New("the list has no end")
		}
	}
}

// scalar reads a text or a word.
func (r *reader) scalar() (string, error) {
	if text, isLiteral := strings.CutPrefix(r.rest, "'"); isLiteral {
		text, rest, ended := strings.Cut(text, "'")
		if !ended || strings.Contains(text, "\n") {
			return "", errors.New("the text has no end")
		}
		r.rest = rest
		return text, nil
	}
	if strings.HasPrefix(r.rest, `"`) {
		quoted, err := strconv.QuotedPrefix(r.rest)
		if err != nil {
			return "", errors.New("the text has no end")
		}
		r.rest = r.rest[len(quoted):]
		text, err := strconv.Unquote(quoted)
		if err != nil {
			return "", errors.New("the text is not understood")
		}
		return text, nil
	}
	word := r.until(" \t\r\n,]#")
	if word == "" {
		return "", errors.New("has no value")
	}
	return word, nil
}

// until takes everything before one of the bytes in set.
func (r *reader) until(set string) string {
	i := strings.IndexAny(r.rest, set)
	if i < 0 {
		i = len(r.rest)
	}
	text := r.rest[:i]
	r.rest = r.rest[i:]
	return text
}
