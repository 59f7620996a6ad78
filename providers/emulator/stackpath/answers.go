// SPDX-License-Identifier: Apache-2.0

package stackpath

import (
	"encoding/json"
	"fmt"
	"net/http"
)

type object = map[string]any

// failure is an error answer of the service. The codes are the codes of gRPC.
type failure struct {
	status, code int
	message      string
	field, why   string // the wrong field and the reason; "" for none
}

func (f *failure) Error() string { return f.message }

const codeInvalid, codeNotFound, codeExists, codeForbidden, codeExhausted, codeInternal, codeNobody = 3, 5, 6, 7, 8, 13, 16

func invalid(field, format string, args ...any) error {
	return &failure{http.StatusBadRequest, codeInvalid, "the request is not valid", field, fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) error {
	return &failure{http.StatusNotFound, codeNotFound, fmt.Sprintf(format, args...), "", ""}
}

func (f *failure) write(w http.ResponseWriter) {
	details := []object{{"@type": "stackpath.rpc.RequestInfo", "requestId": "emulated"}}
	if f.field != "" {
		details = append(details, object{"@type": "stackpath.rpc.BadRequest", "fieldViolations": []object{{"field": f.field, "description": f.why}}})
	}
	if f.code == codeExhausted {
		details = append(details, object{"@type": "stackpath.rpc.RetryInfo", "retryDelay": "1s"})
	}
	write(w, f.status, object{"code": f.code, "message": f.message, "details": details})
}

func write(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // the client may have disconnected
}

// Refuse returns a handler that answers every request with an error, for faults of a Front.
func Refuse(status, code int, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { (&failure{status, code, message, "", ""}).write(w) }
}
