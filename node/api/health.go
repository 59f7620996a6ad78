// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// handleHealth answers "ok", or 500 with the reason. A nil check is always well.
func handleHealth(check func(context.Context) error) http.HandlerFunc {
	return answerErrors(func(w http.ResponseWriter, req *http.Request) error {
		if check != nil {
			if err := check(req.Context()); err != nil {
				// Not wrapped: the kind of the cause must not decide on the answer.
				return errors.New("node is not healthy: " + err.Error())
			}
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = fmt.Fprint(w, "ok")
		return nil
	})
}
