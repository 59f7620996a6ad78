// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"fmt"
	"net/url"
	"reflect"
	"strconv"
)

// encode writes a request as a form: fields by their names, fields of structs after a dot, items of lists with
// numbers from 1. It leaves out zero values, but not a pointer to zero. It panics on a type that a request
// cannot have.
func encode(request any) url.Values {
	form := url.Values{}
	if request != nil {
		encodeValue(form, "", reflect.Indirect(reflect.ValueOf(request)))
	}
	return form
}

func encodeValue(form url.Values, name string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() {
				encodeValue(form, join(name, nameOf(v.Type().Field(i))), f)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			encodeValue(form, join(name, strconv.Itoa(i+1)), v.Index(i))
		}
	case reflect.Pointer:
		encodeValue(form, name, v.Elem())
	case reflect.String:
		form.Set(name, v.String())
	case reflect.Bool:
		form.Set(name, strconv.FormatBool(v.Bool()))
	case reflect.Int, reflect.Int32, reflect.Int64:
		form.Set(name, strconv.FormatInt(v.Int(), 10))
	case reflect.Float64:
		form.Set(name, strconv.FormatFloat(v.Float(), 'f', -1, 64))
	default:
		panic(fmt.Sprintf("eci: a request has a field %s of type %s", name, v.Type()))
	}
}

// nameOf returns the name of a field at ECI: its JSON tag, or its name.
func nameOf(f reflect.StructField) string {
	if name := f.Tag.Get("json"); name != "" {
		return name
	}
	return f.Name
}

func join(name, field string) string {
	if name == "" {
		return field
	}
	return name + "." + field
}
