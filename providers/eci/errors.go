// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

const (
	// throttledFor is how long to wait when ECI throttles without a delay in the answer. Its limits count by the
	// minute.
	throttledFor = 10 * time.Second
	// scarceFor is how long to wait without quota or stock.
	scarceFor = 30 * time.Second
	// tolerated is the maximum difference of clocks: ECI refuses older requests.
	tolerated = 15 * time.Minute
)

// apiError is the answer of ECI to a request that failed.
type apiError struct {
	action    string
	status    int
	Code      string
	Message   string
	RequestID string `json:"RequestId"`
	hint      string
}

func (e *apiError) Error() string {
	text := e.action + ": ECI says " + e.Code
	if e.Code == "" {
		text = e.action + ": ECI answers " + strconv.Itoa(e.status) + " " + http.StatusText(e.status)
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.hint != "" {
		text += ": " + e.hint
	}
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

// errorOf returns the error of an answer. Its kind is not-found only where ECI says so in its own words, and
// invalid-input where another try with the same pod would get the same answer. All other errors may pass, and do
// not say whether the request was done.
func errorOf(action string, answer *http.Response, data []byte, now time.Time) error {
	e := &apiError{action: action, status: answer.StatusCode}
	_ = json.Unmarshal(data, e) // a body other than JSON has no code
	e.Message = strings.TrimSpace(e.Message)
	e.hint = e.explain(answer.Header, now)
	wait := config.RetryAfter(answer.Header)
	switch {
	case e.throttled():
		return errdefs.RetryAfter(e, max(wait, throttledFor))
	case e.scarce():
		return errdefs.RetryAfter(e, max(wait, scarceFor))
	case wait > 0:
		return errdefs.RetryAfter(e, wait)
	case e.status >= 500:
		return e
	case e.noGroup():
		return errdefs.AsNotFound(e)
	case e.refused():
		return errdefs.AsInvalidInput(e)
	}
	return e
}

// throttled reports whether there were too many requests. https://error-center.alibabacloud.com has codes with
// this prefix for every product.
func (e *apiError) throttled() bool {
	return e.status == http.StatusTooManyRequests || strings.HasPrefix(e.Code, "Throttling")
}

// scarce reports whether quota or stock is missing: another try may succeed later.
func (e *apiError) scarce() bool {
	return strings.HasPrefix(e.Code, "QuotaExce") || strings.Contains(e.Code, ".QuotaExce") || e.stock()
}

func (e *apiError) stock() bool {
	return strings.Contains(e.Code, "NoStock") || e.Code == "Spot.NotMatched" || e.Code == "RecommendEmpty.InstanceTypeFamilyNotMatched" || e.Code == "InvalidVSwitchId.IpNotEnough"
}

// noGroup reports whether the group does not exist. It returns false if another thing, such as a switch, is not
// found.
func (e *apiError) noGroup() bool {
	switch e.Code {
	case "ContainerGroupNotFound", "ContainerGroup.NotFound", "InvalidContainerGroupId.NotFound":
		return true
	}
	return false
}

// refused reports whether the request itself is impossible.
func (e *apiError) refused() bool {
	if e.status < 400 || e.status >= 500 || e.status == http.StatusForbidden || e.status == http.StatusUnauthorized {
		return false
	}
	for _, prefix := range []string{"InvalidParameter", "MissingParameter", "InvalidContainer", "InvalidVolume"} {
		if strings.HasPrefix(e.Code, prefix) {
			return true
		}
	}
	return slices.Contains(never, e.Code)
}

// never are the error codes of CreateContainerGroup (its page of 2026-06-22) that no retry, operator or account
// can change. Codes with certain prefixes are permanent too.
var never = []string{
	"InvalidSpotCpuMemorySpec", "InvalidInstanceTypeForEciBuy", "InvalidInstanceTypeForEciSpotDurationBuy", "InstanceTypeNotMatchCpuArch",
	"LocalDiskAmountNotMatch", "DiskVolume.NotSupport", "DiskNumber.LimitExceed", "DiskVolume.NotInSameZone", "ImageSnapshot.NotSupport",
	"FeatureBasedConstraintConflict", "Ipv6AddressNotSupportInstanceType", "InvalidOperation.KMS.InstanceTypeNotSupport", "PrivatePoolInstanceSpotNotSupport",
}

// explain returns advice on the error.
func (e *apiError) explain(h http.Header, now time.Time) string {
	switch {
	case e.throttled():
		return "too many requests of this account: it is tried again later"
	case e.stock():
		return "there is no such size here now: configure switches of several zones (vSwitchIDs), or ask for another size"
	case e.scarce():
		return "the quota is used up: ask for more in the console, or lower the capacity of the node"
	case strings.HasPrefix(e.Code, "InvalidTimeStamp") || e.Code == "SignatureExpired":
		if off := apart(h, now); off > 0 {
			return fmt.Sprintf("the clock of this machine is %s off that of ECI: set it, as signatures have a time", off)
		}
		return "look at the clock of this machine, as signatures have a time"
	case strings.HasPrefix(e.Code, "InvalidAccessKeyId"), e.Code == "SignatureDoesNotMatch":
		return "look at accessKeyID and accessKeySecret"
	case strings.HasPrefix(e.Code, "InvalidSecurityToken"):
		return "the token of a temporary key has ended, or belongs to another key"
	case strings.HasPrefix(e.Code, "InvalidRegionId"):
		return "look at region, and at endpoint, which is that of a region"
	case strings.HasPrefix(e.Code, "InvalidVSwitchId"):
		return "check vSwitchIDs: each switch must be in the region, and in the VPC of the security group"
	case strings.HasPrefix(e.Code, "InvalidSecurityGroupId"):
		return "check securityGroupID: the group must be in the region, and in the VPC of the switches"
	case strings.HasPrefix(e.Code, "Forbidden"), e.Code == "NoPermission":
		return "give the user or role the right eci:" + e.action
	}
	return ""
}

// apart returns how far the clock of this machine is off, or 0 if it is near enough or the difference is
// unknown.
func apart(h http.Header, now time.Time) time.Duration {
	there, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	if off := now.Sub(there).Round(time.Second); off.Abs() >= tolerated {
		return off.Abs()
	}
	return 0
}

// undone reports whether an error proves that ECI did nothing. All other errors, and a missing answer, leave the
// result unknown.
func undone(err error) bool {
	var said *apiError
	return errors.As(err, &said) && said.status < 500 && said.Code != ""
}

// isMismatch reports whether ECI knows the token of a create from another request.
func isMismatch(err error) bool {
	var said *apiError
	return errors.As(err, &said) && strings.HasPrefix(said.Code, "Idempotent")
}

// errNoID is the error of an answer without the ID of the group: the result of the request is unknown.
func errNoID(action string) error {
	return fmt.Errorf("%s: ECI gives no ID of the group: it is asked again", action)
}
