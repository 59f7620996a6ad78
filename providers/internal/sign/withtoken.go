// SPDX-License-Identifier: Apache-2.0

package sign

import "net/http"

// WithToken returns a transport that sends each request with a token. It replaces a token once if the service
// does not accept it any more.
func WithToken(next http.RoundTripper, tokens *Tokens) http.RoundTripper {
	return withToken{next, tokens}
}

type withToken struct {
	next   http.RoundTripper
	tokens *Tokens
}

// RoundTrip implements http.RoundTripper.
func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := bodyOf(r)
	if err != nil {
		return nil, err
	}
	token, err := w.tokens.Token(r.Context(), "")
	if err != nil {
		return nil, err
	}
	answer, err := w.sendWithToken(r, body, token)
	if err != nil || answer.StatusCode != http.StatusUnauthorized {
		return answer, err
	}
	fresh, err := w.tokens.Token(r.Context(), token)
	if err != nil {
		_ = answer.Body.Close()
		return nil, err
	}
	if fresh == token {
		return answer, nil
	}
	_ = answer.Body.Close()
	return w.sendWithToken(r, body, fresh)
}

func (w withToken) sendWithToken(r *http.Request, body []byte, token string) (*http.Response, error) {
	r = withBody(r, body)
	r.Header.Set(HeaderToken, token)
	return w.next.RoundTrip(r)
}
