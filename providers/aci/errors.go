// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azlogin"
)

// advice is the advice for errors of Azure, by code.
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

// mendable are substrings of the codes of bad requests that may succeed later, after a change by the operator, or for another pod. The
// codes of advice may too. Any other bad request means that ACI will never create the group: no list of such codes is complete. The
// emulator has the published codes with their sources, and tests check this table against them.
var mendable = []string{
	"MultipleErrorsOccurred",                                                                                                   // of any kind
	"StorageAccount",                                                                                                           // a share, its key, and the access to the share
	"NotAvailable", "Quota", "Capacity", "LimitReached", "OperationNotAllowed", "AllocationFailed", "DoesNotAllowProvisioning", // DnsNameLabelNotAvailable is one of them
	"FailedIdentityOperation", "Timeout", "TooManyRequests", "Conflict", "InProgress", "BeingDeleted", // a retry may succeed
	"InvalidApiVersionParameter", "NoRegisteredProviderFound", "LinkedInvalidPropertyId", "InvalidResourceReference", "NotRegistered", "Registration",
	"DisallowedOperation", "Subnet", "VirtualNetwork", "Vnet", "NetworkProfile", // the configuration of the node
}

// never are codes of impossible groups that contain one of these substrings.
var never = []string{"CustomProvisioningTimeoutInSecondsNotSuppported", "InvalidIpAddressTypeForNetworkProfile", "PrivateIpWithoutSubnetNotSupported"}

// made are the error codes of a create for a group that already exists.
var made = []string{"ContainerGroupTransitioning", "InvalidContainerGroupUpdate"}

// isMade reports whether an error means that the group exists.
func isMade(err error) bool {
	return slices.Contains(made, azlogin.CodeOf(err))
}

// isFinal reports whether an answer says that a group is impossible. A bad request without a code comes from a proxy, not from ACI.
// With a bad request that can succeed later, ACI sends a retry time.
func isFinal(answer *http.Response, code string) bool {
	switch {
	case !isCreate(answer) || answer.StatusCode != http.StatusBadRequest:
		return false
	case code == "" || advice[code] != "" || slices.Contains(made, code) || azlogin.RetryAfter(answer) != 0:
		return false
	}
	return slices.Contains(never, code) || !slices.ContainsFunc(mendable, func(part string) bool { return strings.Contains(code, part) })
}

// isCreate reports whether an answer belongs to the create of a group. A not-found error of a create is about something other than the
// group.
func isCreate(answer *http.Response) bool {
	return answer.Request != nil && answer.Request.Method == http.MethodPut
}

// explain explains an error of ACI. The kind is not-found or invalid-input if ACI says so.
func explain(what string, err error) error {
	return azlogin.Errors{Service: "ACI", Advice: advice, Said: said, Kind: kind}.Explain(what, err)
}

func kind(answer *http.Response, code string, err error) error {
	switch {
	case answer.StatusCode == http.StatusNotFound && code != "ResourceGroupNotFound" && code != "SubscriptionNotFound" && !isCreate(answer):
		return errdefs.AsNotFound(err)
	case isFinal(answer, code):
		return errdefs.AsInvalidInput(err)
	}
	return err
}

func said(body []byte) (code, message string) {
	var said struct {
		Error struct{ Code, Message string }
	}
	_ = json.Unmarshal(body, &said) // a body other than JSON has no code
	return said.Error.Code, said.Error.Message
}
