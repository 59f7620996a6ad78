// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
)

func answerJSON(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // the client may have disconnected
}

// refuseRequest answers with an error in the form of the resource manager.
func refuseRequest(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("x-ms-correlation-request-id", rand.Text())
	answerJSON(w, status, map[string]any{"error": map[string]string{"code": code, "message": message}})
}
