// SPDX-License-Identifier: Apache-2.0

package oldfile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Value is the value of a name in a file: one text, or the texts of a list.
type Value struct {
	texts  []string
	isList bool
}

// Setter takes a value. Its error names the expected value. Read adds the position.
type Setter func(Value) error

// Read passes each value in data, the contents of the file called name, to the setter of its name. It joins
// several errors.
func Read(name string, data []byte, setters map[string]Setter) error {
	var values map[string]any
	if _, err := toml.Decode(string(data), &values); err != nil {
		return fmt.Errorf("%s: read as TOML, as it has neither apiVersion nor kind: %w", name, err)
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(values)) {
		setter := setters[key]
		if setter == nil {
			errs = append(errs, fmt.Errorf("%s: %s: is not known; known are %s", name, key, strings.Join(slices.Sorted(maps.Keys(setters)), ", ")))
			continue
		}
		v, err := valueOf(values[key])
		if err == nil {
			err = setter(v)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", name, key, err))
		}
	}
	return errors.Join(errs...)
}

func valueOf(decoded any) (v Value, err error) {
	switch decoded := decoded.(type) {
	case string, int64, float64, bool:
		v.texts = []string{fmt.Sprint(decoded)}
	case []any:
		v.isList = true
		for _, one := range decoded {
			text, isText := one.(string)
			if !isText {
				return v, errors.New("want a list of texts")
			}
			v.texts = append(v.texts, text)
		}
	default:
		return v, errors.New("want a text, a number, true, false or a list")
	}
	return v, nil
}

// Text sets a text.
func Text(into *string) Setter {
	return func(v Value) (err error) {
		*into, err = v.oneText("a text")
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

// Bool sets a boolean.
func Bool(into *bool) Setter {
	return func(v Value) error {
		text, err := v.oneText("true or false")
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
		text, err := v.oneText("an amount")
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
	if text, err := v.oneText("Linux"); err != nil || text != "Linux" {
		return fmt.Errorf("%q: pods of this provider run on Linux", text)
	}
	return nil
}

// Ignore accepts any value. It is for names that had no effect in the earlier provider either.
func Ignore(Value) error { return nil }

// Gone refuses every value, with advice.
func Gone(instead string) Setter { return func(Value) error { return errors.New(instead) } }

func (v Value) oneText(want string) (string, error) {
	if v.isList || len(v.texts) != 1 {
		return "", fmt.Errorf("want %s, not a list", want)
	}
	return v.texts[0], nil
}
