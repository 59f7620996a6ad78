// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	smithy "github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

// unsaid is how long to wait when a service does not say how long.
const unsaid = 5 * time.Second

// Codes of errors, by meaning. ClusterNotFoundException is not in notThere: a missing cluster says nothing about
// a pod.
var (
	tooMany  = []string{"ThrottlingException", "Throttling", "TooManyRequestsException", "RequestLimitExceeded", "RequestThrottled", "RequestThrottledException"}
	wrong    = []string{"ClientException", "InvalidParameterException", "ValidationException", "InvalidRequestException", "PlatformUnknownException", "PlatformTaskDefinitionIncompatibilityException", "UnsupportedFeatureException"}
	notThere = []string{"ResourceNotFoundException"}
	refused  = map[string]string{
		"AccessDeniedException":       "the credentials lack a right: the policy is in the README",
		"UnrecognizedClientException": "the credentials are unknown: check the credentials of this machine",
		"InvalidSignatureException":   "the secret key is another one, or the clock of this machine is off: set both right",
		"ExpiredTokenException":       "the credentials have expired: renew them",
		"AccessDenied":                "the credentials lack a right: the policy is in the README",
		"UnauthorizedOperation":       "the credentials lack a right: the policy is in the README",
		"ClusterNotFoundException":    "the cluster of ECS is not there: make it, or configure cluster and region",
	}
)

// Texts that distinguish errors with the code of another kind.
const (
	noTask       = "The referenced task was not found"
	noDefinition = "Unable to describe task definition"
	concurrently = "Too many concurrent attempts"
)

// kind gives an error of a service its kind, and adds the failed action. After an error without a kind, it is unknown whether the
// request had an effect.
func kind(err error, doing string) error {
	if err == nil {
		return nil
	}
	var api smithy.APIError
	var answer *smithyhttp.ResponseError
	status, header := 0, http.Header{}
	if errors.As(err, &answer) && answer.HTTPResponse() != nil {
		status, header = answer.HTTPStatusCode(), answer.HTTPResponse().Header
	}
	if !errors.As(err, &api) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	code, text := api.ErrorCode(), api.ErrorMessage()
	said := fmt.Errorf("%s: %w", doing, err)
	switch {
	case slices.Contains(tooMany, code) || status == http.StatusTooManyRequests || strings.Contains(text, concurrently):
		return errdefs.RetryAfter(said, cmp.Or(config.RetryAfter(header), unsaid))
	case status >= http.StatusInternalServerError:
		return said
	case slices.Contains(notThere, code), strings.Contains(text, noTask), strings.Contains(text, noDefinition):
		return errdefs.AsNotFound(said)
	case code == "InvalidSignatureException" && strings.Contains(text, "scoped to a valid region"):
		return fmt.Errorf("%w: the endpoint is in another region than it names: look at region and endpoint", said)
	case refused[code] != "":
		return fmt.Errorf("%w: %s", said, refused[code])
	case slices.Contains(wrong, code):
		return errdefs.AsInvalidInput(said)
	}
	return said
}

// saysAgain reports whether ECS says that the token of a request was used for another request. Then ECS has run
// the task of that other request.
func saysAgain(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "ConflictException"
}

// saysNo reports whether a service has answered that it did not do the request.
func saysNo(err error) bool {
	var answer *smithyhttp.ResponseError
	var api smithy.APIError
	if !errors.As(err, &answer) || !errors.As(err, &api) {
		_, failures := errdefs.RetryAfterOf(err)
		return failures // in an answer
	}
	return answer.HTTPStatusCode() < http.StatusInternalServerError
}

// wasRefused reports whether a service has refused the content of a request.
func wasRefused(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && slices.Contains(wrong, api.ErrorCode())
}
