// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/sign"
)

// apiVersion is the version of every request.
const apiVersion = "2018-08-08"

const (
	// callTimeout is the timeout of a request, including its answer.
	callTimeout = 30 * time.Second
	// maxAnswer is the maximum number of bytes read from an answer.
	maxAnswer = 32 << 20
)

// client is a client of ECI in one region.
type client struct {
	endpoint string // without a slash at its end
	region   string
	http     *http.Client
	now      func() time.Time
}

// newClient returns a client that signs requests with a key. now is the clock; nil means the clock of the
// machine.
func newClient(endpoint, region string, next http.RoundTripper, key sign.KeySource, now func() time.Time) *client {
	if now == nil {
		now = time.Now
	}
	return &client{
		endpoint: strings.TrimSuffix(endpoint, "/"), region: region, now: now,
		http: &http.Client{
			Transport: sign.SignedACS3(next, key, now), Timeout: callTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a redirect would pass on the credentials
		},
	}
}

// call requests an action of ECI, and decodes the answer. The errors have kinds; see apiError.
func (c *client) call(ctx context.Context, action string, request, answer any) error {
	form := encode(request)
	form.Set("RegionId", c.region)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint+"/", strings.NewReader(form.Encode()))
	if err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "virtual-kubelet-eci")
	r.Header.Set(sign.HeaderACSAction, action)
	r.Header.Set(sign.HeaderACSVersion, apiVersion)
	response, err := c.http.Do(r)
	if err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: read the answer: %w", action, err)
	case len(data) > maxAnswer:
		return fmt.Errorf("%s: the answer has more than %d bytes", action, maxAnswer)
	case response.StatusCode != http.StatusOK:
		return errorOf(action, response, data, c.now())
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return fmt.Errorf("%s: the answer is not understood: %w", action, quiet(err))
	}
	return nil
}

// quiet returns an error of the decoder without the decoded text, because an answer may quote the request.
func quiet(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Errorf("field %s is a JSON %s", kind.Field, kind.Value)
	}
	return fmt.Errorf("it is no JSON: %T", err)
}

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
			field := nameOf(v.Type().Field(i))
			if v.Type() == reflect.TypeFor[hook]() {
				field = name + field
			} else {
				field = join(name, field)
			}
			if f := v.Field(i); !f.IsZero() {
				encodeValue(form, field, f)
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
