// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
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

// errorOf returns the error of an answer. The kind is not-found only for ECI's own codes, and invalid-input only if a retry with the
// same pod would fail in the same way. All other errors may be temporary, and do not say whether the request had an effect.
func errorOf(action string, answer *http.Response, data []byte, now time.Time) error {
	e := &apiError{action: action, status: answer.StatusCode}
	_ = json.Unmarshal(data, e) // a body other than JSON has no code
	e.Message = strings.TrimSpace(e.Message)
	means := e.meaning()
	if e.hint = means.hint; means.clock {
		if off := apart(answer.Header, now); off > 0 {
			e.hint = fmt.Sprintf("the clock of this machine is %s off that of ECI: set it, as signatures have a time", off)
		}
	}
	if means.right {
		e.hint += action
	}
	wait := max(config.RetryAfter(answer.Header), means.wait)
	switch {
	case wait > 0:
		return errdefs.RetryAfter(e, wait)
	case e.status >= 500:
		return e
	case slices.Contains(noGroup, e.Code):
		return errdefs.AsNotFound(e)
	case e.refused():
		return errdefs.AsInvalidInput(e)
	}
	return e
}

// meaning is the meaning of a code of ECI.
type meaning struct {
	codes *regexp.Regexp
	hint  string
	wait  time.Duration // delay before a retry; 0 if a retry alone does not help
	clock bool          // the clock of this machine may be wrong
	right bool          // the hint ends with the action of the request
}

// meanings are the known codes; the first matching row counts. https://error-center.alibabacloud.com has codes with Throttling for
// every product.
var meanings = []meaning{
	{codes: regexp.MustCompile(`^Throttling`), wait: throttledFor, hint: "too many requests of this account: it is tried again later"},
	{codes: regexp.MustCompile(`NoStock|^(Spot\.NotMatched|RecommendEmpty\.InstanceTypeFamilyNotMatched|InvalidVSwitchId\.IpNotEnough)$`), wait: scarceFor,
		hint: "there is no such size here now: configure switches of several zones (vSwitchIDs), or ask for another size"},
	{codes: regexp.MustCompile(`(^|\.)QuotaExce`), wait: scarceFor, hint: "the quota is used up: ask for more in the console, or lower the capacity of the node"},
	{codes: regexp.MustCompile(`^InvalidTimeStamp|^SignatureExpired$`), clock: true, hint: "look at the clock of this machine, as signatures have a time"},
	{codes: regexp.MustCompile(`^InvalidAccessKeyId|^SignatureDoesNotMatch$`), hint: "look at accessKeyID and accessKeySecret"},
	{codes: regexp.MustCompile(`^InvalidSecurityToken`), hint: "the token of a temporary key has ended, or belongs to another key"},
	{codes: regexp.MustCompile(`^InvalidRegionId`), hint: "look at region, and at endpoint, which is that of a region"},
	{codes: regexp.MustCompile(`^InvalidVSwitchId`), hint: "check vSwitchIDs: each switch must be in the region, and in the VPC of the security group"},
	{codes: regexp.MustCompile(`^InvalidSecurityGroupId`), hint: "check securityGroupID: the group must be in the region, and in the VPC of the switches"},
	{codes: regexp.MustCompile(`^Forbidden|^NoPermission$`), right: true, hint: "give the user or role the right eci:"},
}

// meaning returns the meaning of the code, or the zero value for an unknown code.
func (e *apiError) meaning() meaning {
	if e.status == http.StatusTooManyRequests {
		return meanings[0]
	}
	if i := slices.IndexFunc(meanings, func(m meaning) bool { return m.codes.MatchString(e.Code) }); i >= 0 {
		return meanings[i]
	}
	return meaning{}
}

// noGroup are the codes of a group that does not exist. Other things, such as switches, have other codes.
var noGroup = []string{"ContainerGroupNotFound", "ContainerGroup.NotFound", "InvalidContainerGroupId.NotFound"}

// impossible matches codes of impossible requests. never has further codes.
var impossible = regexp.MustCompile(`^(InvalidParameter|MissingParameter|InvalidContainer|InvalidVolume)`)

// refused reports whether the request itself is impossible.
func (e *apiError) refused() bool {
	return e.status >= 400 && e.status < 500 && e.status != http.StatusForbidden && e.status != http.StatusUnauthorized &&
		(impossible.MatchString(e.Code) || slices.Contains(never, e.Code))
}

// never are the error codes of CreateContainerGroup (its page of 2026-06-22) that no retry, operator or account
// can change. Codes with certain prefixes are permanent too.
var never = []string{
	"InvalidSpotCpuMemorySpec", "InvalidInstanceTypeForEciBuy", "InvalidInstanceTypeForEciSpotDurationBuy", "InstanceTypeNotMatchCpuArch",
	"LocalDiskAmountNotMatch", "DiskVolume.NotSupport", "DiskNumber.LimitExceed", "DiskVolume.NotInSameZone", "ImageSnapshot.NotSupport",
	"FeatureBasedConstraintConflict", "Ipv6AddressNotSupportInstanceType", "InvalidOperation.KMS.InstanceTypeNotSupport", "PrivatePoolInstanceSpotNotSupport",
}

// apart returns how far the clock of this machine is off, or 0 if the difference is tolerated or unknown.
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

// isMismatch reports whether ECI has seen the token of a create in a different request.
func isMismatch(err error) bool {
	var said *apiError
	return errors.As(err, &said) && strings.HasPrefix(said.Code, "Idempotent")
}

// errNoID is the error of an answer without the ID of the group: the result of the request is unknown.
func errNoID(action string) error {
	return fmt.Errorf("%s: ECI gives no ID of the group: it is asked again", action)
}
