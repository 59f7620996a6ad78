// SPDX-License-Identifier: Apache-2.0

package stackpath

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/jsonlist"
)

const (
	callTimeout  = 30 * time.Second
	maxAnswer    = 64 << 20         // a longer response is an error
	throttledFor = 10 * time.Second // if the service sends no retry delay
	tokenPath    = "/identity/v1/oauth2/token"
)

// client makes requests with a token.
type client struct {
	endpoint string
	http     *http.Client
	close    func()
}

func newClient(c Config, next http.RoundTripper) *client {
	plain := &http.Client{Transport: next, Timeout: callTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }} // it would take credentials along
	signed := *plain
	signed.Transport = &oauth2.Transport{Base: next, Source: oauth2.ReuseTokenSource(nil, tokens{c, plain})}
	return &client{c.Endpoint, &signed, plain.CloseIdleConnections}
}

// tokens requests tokens.
type tokens struct {
	Config
	http *http.Client
}

// Token implements oauth2.TokenSource. A login error is not about workloads, so its errors have no kinds.
func (t tokens) Token() (*oauth2.Token, error) {
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient, t.http)
	token, err := (&clientcredentials.Config{
		ClientID: t.ClientID, ClientSecret: t.ClientSecret.Value(ctx), TokenURL: t.Endpoint + tokenPath, Scopes: []string{"workloads"}, AuthStyle: oauth2.AuthStyleInParams,
	}).Token(ctx)
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) { // the error quotes the response
		err = errors.New(errorOf("POST "+tokenPath, refused.Response.StatusCode, refused.Body).Error())
	}
	return token, err
}

// call makes a request, and decodes the response into answer unless answer is nil.
func (c *client) call(ctx context.Context, method, path string, body []byte, answer any) error {
	return c.askService(ctx, method, path, body, func(r io.Reader) error {
		if answer == nil {
			return nil
		}
		data, err := io.ReadAll(r)
		if err == nil && json.Unmarshal(data, answer) != nil { // this error may quote a secret
			err = errors.New("it is no JSON of the description")
		}
		return err
	})
}

// eachItem passes each item of a list to take, from all pages.
func eachItem[T any](ctx context.Context, c *client, path string, take func(T)) error {
	query := url.Values{"page_request.first": {"1000"}}
	for {
		var page struct {
			HasNextPage bool
			EndCursor   string
		}
		err := c.askService(ctx, http.MethodGet, path+"?"+query.Encode(), nil, func(data io.Reader) error {
			return jsonlist.Read(data, []string{"results"}, take, map[string]any{"pageInfo": &page})
		})
		if err != nil || !page.HasNextPage {
			return err
		}
		if page.EndCursor == "" || page.EndCursor == query.Get("page_request.after") {
			return fmt.Errorf("GET %s: the list goes on, and the service does not say where", path)
		}
		query.Set("page_request.after", page.EndCursor)
	}
}

// askService makes a request, and passes the response to read. An error response becomes an error with a kind: see errorOf.
func (c *client) askService(ctx context.Context, method, path string, body []byte, read func(io.Reader) error) error {
	r, err := http.NewRequestWithContext(ctx, method, c.endpoint+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "User-Agent": {"virtual-kubelet-stackpath"}}
	answer, err := c.http.Do(r)
	if err != nil {
		return err // the error names the request
	}
	defer answer.Body.Close()
	got, what := io.LimitReader(answer.Body, maxAnswer), method+" "+r.URL.Path
	if answer.StatusCode/100 != 2 {
		data, _ := io.ReadAll(got) // a truncated response gives a shorter error
		return errorOf(what, answer.StatusCode, data)
	}
	if err := read(got); err != nil {
		return fmt.Errorf("%s: read the answer: %w", what, err)
	}
	return nil
}

// apiError is an error of the service. Code is a gRPC code.
type apiError struct {
	what    string
	status  int
	Code    int
	Message string
	Details []struct {
		RetryDelay, RequestID       string
		FieldViolations, Violations []struct{ Field, Subject, Description string }
	}
}

const codeInvalid, codeNotFound, codeExists, codeExhausted = 3, 5, 6, 8

func (e *apiError) Error() string {
	text := fmt.Sprintf("%s: the service answers %d %s: %s", e.what, e.status, http.StatusText(e.status), e.Message)
	for _, d := range e.Details {
		for _, v := range append(d.FieldViolations, d.Violations...) {
			text += "; " + v.Field + v.Subject + ": " + v.Description
		}
		if d.RequestID != "" {
			text += " (request " + d.RequestID + ")"
		}
	}
	switch isLogin := e.what == "POST "+tokenPath; {
	case isLogin && e.status == http.StatusUnauthorized:
		text += ": look at clientSecret"
	case isLogin && e.status == http.StatusNotFound:
		text += ": look at clientID and endpoint"
	case e.status == http.StatusForbidden || e.status == http.StatusNotFound && e.Code != codeNotFound:
		text += ": look at stackID, and at the rights of the client"
	}
	return text
}

// errorOf returns the error of an error response. Its kind is not-found if the body, not only the HTTP status, says so, and invalid-input if a retry
// would fail in the same way.
func errorOf(what string, status int, data []byte) error {
	e := &apiError{what: what, status: status}
	_ = json.Unmarshal(data, e) // a body other than JSON has no code
	var wait time.Duration
	for _, d := range e.Details {
		after, _ := time.ParseDuration(d.RetryDelay)
		wait = max(wait, after)
	}
	switch {
	case status == http.StatusTooManyRequests || e.Code == codeExhausted:
		return errdefs.RetryAfter(e, max(wait, throttledFor))
	case wait > 0:
		return errdefs.RetryAfter(e, wait)
	case status == http.StatusNotFound && e.Code == codeNotFound:
		return errdefs.AsNotFound(e)
	case status == http.StatusBadRequest && e.Code == codeInvalid:
		return errdefs.AsInvalidInput(e)
	}
	return e
}
