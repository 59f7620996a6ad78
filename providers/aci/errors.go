// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azlogin"
)

// advice is what to do about an error of Azure, by its code.
var advice = map[string]string{
	"AuthorizationFailed":                              "give the identity of this provider the role of its README",
	"LinkedAuthorizationFailed":                        "give the identity of this provider the role of its README on the virtual network too",
	"InvalidAuthenticationToken":                       "look at the clock of this machine, and at cloud.audience",
	"InvalidAuthenticationTokenTenant":                 "credentials.tenantID is not the tenant of the subscription",
	"ExpiredAuthenticationToken":                       "look at the clock of this machine",
	"SubscriptionNotFound":                             "look at subscriptionID, and at the tenant of the credentials",
	"InvalidSubscriptionId":                            "look at subscriptionID",
	"ReadOnlyDisabledSubscription":                     "the subscription is disabled",
	"ResourceGroupNotFound":                            "make resourceGroup, or correct it",
	"MissingSubscriptionRegistration":                  "run: az provider register --namespace Microsoft.ContainerInstance",
	"LocationNotAvailableForResourceType":              "look at region: ACI is not there",
	"ContainerGroupQuotaReached":                       "raise the quota of ACI in the region, or lower capacity",
	"ResourceQuotaExceeded":                            "raise the quota of ACI in the region, or lower capacity",
	"ServiceUnavailable":                               "the region has no room for the size now: it is tried again",
	"SubnetDelegationsCannotBeChanged":                 "delegate the subnet to Microsoft.ContainerInstance/containerGroups",
	"SubnetMissingRequiredDelegation":                  "delegate the subnet to Microsoft.ContainerInstance/containerGroups",
	"PrivateIPAddressVirtualNetworkMissingDelegations": "delegate the subnet to Microsoft.ContainerInstance/containerGroups",
	"NetworkProfileSubnetNotFound":                     "look at network.vnet and network.subnet",
	"SubnetIsFull":                                     "the subnet has no addresses left",
	"InaccessibleImage":                                "look at the image, at imagePullSecrets, and at the network rules of the registry",
	"RegistryErrorResponse":                            "the registry limits pulls, or is not well: a login in imagePullSecrets has a limit of its own",
	"CannotAccessStorageAccount":                       "look at the Secret of the volume, and at keys and network rules of the storage account",
	"RequestDisallowedByPolicy":                        "a policy of Azure forbids it: ask who administers the subscription",
}

// mendable are parts of the codes of bad requests that time, the operator or another pod can mend, beside the codes of advice. All other bad
// requests for a group say that the group cannot be, today and tomorrow: ACI has more codes for that than any list. The emulator has the codes that
// are published, with their sources; this table is tested with them.
var mendable = []string{
	"MultipleErrorsOccurred",                                                                                                   // one of them may be any
	"StorageAccount",                                                                                                           // a share, its key, and who may reach it
	"NotAvailable", "Quota", "Capacity", "LimitReached", "OperationNotAllowed", "AllocationFailed", "DoesNotAllowProvisioning", // DnsNameLabelNotAvailable is one of them
	"FailedIdentityOperation", "Timeout", "TooManyRequests", "Conflict", "InProgress", "BeingDeleted", // another try may do
	"InvalidApiVersionParameter", "NoRegisteredProviderFound", "LinkedInvalidPropertyId", "InvalidResourceReference", "NotRegistered", "Registration",
	"DisallowedOperation", "Subnet", "VirtualNetwork", "Vnet", "NetworkProfile", // the configuration of the node
}

// never are codes of groups that cannot be which have such a part all the same.
var never = []string{"CustomProvisioningTimeoutInSecondsNotSuppported", "InvalidIpAddressTypeForNetworkProfile", "PrivateIpWithoutSubnetNotSupported"}

// made are the codes of creates of a group that is there.
var made = []string{"ContainerGroupTransitioning", "InvalidContainerGroupUpdate"}

// isMade reports whether an error says that the group is there.
func isMade(err error) bool {
	var is refused
	return errors.As(err, &is) && slices.Contains(made, is.code)
}

// isFinal reports whether an answer says that a group cannot be. A bad request without a code is not of ACI, but of a proxy, and ACI names a
// time for a next try only where one can succeed.
func isFinal(answer *http.Response, code string) bool {
	switch {
	case !isCreate(answer) || answer.StatusCode != http.StatusBadRequest:
		return false
	case code == "" || advice[code] != "" || slices.Contains(made, code) || azlogin.RetryAfter(answer) != 0:
		return false
	}
	return slices.Contains(never, code) || !slices.ContainsFunc(mendable, func(part string) bool { return strings.Contains(code, part) })
}

// isCreate reports whether an answer is for the create of a group. If that lacks something, it is not the group.
func isCreate(answer *http.Response) bool {
	return answer != nil && answer.Request != nil && answer.Request.Method == http.MethodPut
}

// explain makes an error of the SDK one that says what failed, and what to do, on one line; its kind is not-found or invalid-input where ACI says so.
func explain(what string, err error) error {
	var answer *azcore.ResponseError
	var login *azidentity.AuthenticationFailedError
	switch {
	case errors.As(err, &login):
		return fmt.Errorf("%s: %w", what, azlogin.ExplainLogin(login))
	case !errors.As(err, &answer):
		return fmt.Errorf("%s: %w", what, err)
	}
	code, message := said(answer.RawResponse)
	if code == "" {
		code = answer.ErrorCode
	}
	text := fmt.Sprintf("%s: ACI answers %d %s", what, answer.StatusCode, code)
	if message != "" {
		text += ": " + message
	}
	if do := advice[code]; do != "" {
		text += ": " + do
	}
	if answer.RawResponse != nil {
		if id := answer.RawResponse.Header.Get("x-ms-correlation-request-id"); id != "" {
			text += ", request " + id
		}
		if off := azlogin.Apart(answer.RawResponse.Header, time.Now()); answer.StatusCode == http.StatusUnauthorized && off != 0 {
			text += fmt.Sprintf(": the clock of this machine is %s off that of Azure: set it", off)
		}
	}
	var out error = refused{errors.New(text), answer.StatusCode, code}
	switch {
	case answer.StatusCode == http.StatusNotFound && code != "ResourceGroupNotFound" && code != "SubscriptionNotFound" && !isCreate(answer.RawResponse):
		out = errdefs.AsNotFound(out)
	case isFinal(answer.RawResponse, code):
		out = errdefs.AsInvalidInput(out)
	}
	if after := azlogin.RetryAfter(answer.RawResponse); after > 0 {
		out = errdefs.RetryAfter(out, after)
	}
	return out
}

// refused is an answer that is an error.
type refused struct {
	error
	status int
	code   string
}

// Unwrap lets errors.As see the error.
func (r refused) Unwrap() error { return r.error }

// statusOf is the status of the answer that an error is; 0 if there was none.
func statusOf(err error) int {
	var is refused
	_ = errors.As(err, &is)
	return is.status
}

// answered reports whether ACI has refused a request, which then had no effect. Of its own failures nobody knows.
func answered(err error) bool {
	status := statusOf(err)
	return status != 0 && status < http.StatusInternalServerError && status != http.StatusRequestTimeout
}

// said is what an answer has as code and message, shortened.
func said(answer *http.Response) (code, message string) {
	if answer == nil || answer.Body == nil {
		return "", ""
	}
	data, err := runtime.Payload(answer) // the SDK has read it before
	if err != nil {
		return "", ""
	}
	var body struct {
		Error struct{ Code, Message string }
	}
	_ = json.Unmarshal(data, &body) // one that is no JSON says nothing
	return body.Error.Code, azlogin.Line(body.Error.Message)
}
