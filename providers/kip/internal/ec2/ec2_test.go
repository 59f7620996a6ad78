// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	emulated "github.com/virtual-kubelet/virtual-kubelet/providers/emulator/ec2"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
)

// start returns a driver for an emulator whose instances have no machines.
func start(t *testing.T, c Config) (*Driver, *emulated.Server) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "AK")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "SK")
	cloud := emulated.New(nil)
	s := httptest.NewServer(cloud)
	t.Cleanup(s.Close)
	c.Region, c.Endpoint, c.SubnetID = "us-east-1", s.URL, "subnet-1"
	d, err := New(t.Context(), c, 6421)
	if err != nil {
		t.Fatal(err)
	}
	return d, cloud
}

// lastRequest returns the parameters of the last request of an operation.
func lastRequest(t *testing.T, c *emulated.Server, operation string) url.Values {
	t.Helper()
	all := c.Requests(operation)
	if len(all) == 0 {
		t.Fatalf("no request for %s", operation)
	}
	in, err := url.ParseQuery(string(all[len(all)-1].Body))
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func spec(token string) machine.Spec {
	return machine.Spec{
		Token: token, Type: machine.Type{Name: "t3.nano"}, Image: "ami-1", UserData: []byte(`{"a": "b"}`), VolumeGiB: 8,
		Tags: map[string]string{"vk-cluster": "home", "vk-node": "vk", "vk-token": token},
	}
}

// TestEC2StartEndsByItself: the request has all settings that a later request would set too late: tags of all billed resources, the token, and
// termination at power-off.
func TestEC2StartEndsByItself(t *testing.T) {
	d, c := start(t, Config{SecurityGroups: []string{"sg-1"}})
	s := spec("token-1")
	s.Spot, s.SecurityGroups, s.InstanceProfile, s.PrivateOnly = true, []string{"sg-2"}, "arn:aws:iam::1:instance-profile/reader", true
	m, err := d.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if m.State != machine.Starting || m.Address != "10.0.0.1:6421" || m.IP != "10.0.0.1" || !m.Spot || m.Tags["vk-token"] != "token-1" || m.Created.IsZero() {
		t.Errorf("got %+v", m)
	}
	in := lastRequest(t, c, "RunInstances")
	want := map[string]string{
		"ClientToken": "token-1", "InstanceInitiatedShutdownBehavior": "terminate", "MinCount": "1", "MaxCount": "1", "MetadataOptions.HttpTokens": "required", "MetadataOptions.HttpProtocolIpv6": "disabled",
		"MetadataOptions.HttpPutResponseHopLimit": "1", "UserData": base64.StdEncoding.EncodeToString(s.UserData), "NetworkInterface.1.SubnetId": "subnet-1",
		"NetworkInterface.1.SecurityGroupId.1": "sg-1", "NetworkInterface.1.SecurityGroupId.2": "sg-2", "NetworkInterface.1.AssociatePublicIpAddress": "false",
		"NetworkInterface.1.DeleteOnTermination": "true", "BlockDeviceMapping.1.Ebs.DeleteOnTermination": "true", "BlockDeviceMapping.1.Ebs.VolumeSize": "8",
		"InstanceMarketOptions.SpotOptions.SpotInstanceType": "one-time", "InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior": "terminate",
		"IamInstanceProfile.Arn":          "arn:aws:iam::1:instance-profile/reader",
		"TagSpecification.1.ResourceType": "instance", "TagSpecification.2.ResourceType": "volume", "TagSpecification.3.ResourceType": "network-interface",
		"TagSpecification.4.ResourceType": "spot-instances-request",
	}
	for name, value := range want {
		if got := in.Get(name); got != value {
			t.Errorf("%s: got %q, want %q", name, got, value)
		}
	}
	for n := 1; n <= 4; n++ {
		if got := in.Get(fmt.Sprintf("TagSpecification.%d.Tag.1.Value", n)); got != "home" {
			t.Errorf("%s has the tag %q, want home", in.Get(fmt.Sprintf("TagSpecification.%d.ResourceType", n)), got)
		}
	}
	s.UserData = make([]byte, 16<<10+1)
	if _, err := d.Start(t.Context(), s); !errdefs.IsInvalidInput(err) {
		t.Errorf("user data of more than 16 KiB: %v", err)
	}
}

// TestEC2TokenIsOneInstance: a repeated start returns the first instance, also with changed user data, or an error while lists lack the instance.
func TestEC2TokenIsOneInstance(t *testing.T) {
	d, c := start(t, Config{})
	first, err := d.Start(t.Context(), spec("token-1"))
	if err != nil {
		t.Fatal(err)
	}
	same, err := d.Start(t.Context(), spec("token-1"))
	if err != nil || same.ID != first.ID {
		t.Errorf("the same again: %s, %v", same.ID, err)
	}
	changed := spec("token-1")
	changed.UserData = []byte("other")
	if m, err := d.Start(t.Context(), changed); err != nil || m.ID != first.ID {
		t.Errorf("with other user data: %s, %v", m.ID, err)
	}
	c.Hide(true)
	if _, err := d.Start(t.Context(), changed); err == nil || machine.RefusalOf(err) != 0 || errdefs.IsInvalidInput(err) {
		t.Errorf("while lists lack it: %v, want an error that says nothing of the machine", err)
	}
	if all := c.Running(); len(all) != 1 {
		t.Errorf("instances %s", all)
	}
}

// TestEC2ListHasAllPages: a list has the instances of this node on all pages, or is an error.
func TestEC2ListHasAllPages(t *testing.T) {
	d, c := start(t, Config{PublicAddress: true})
	for n := range 5 {
		s := spec("token-" + strconv.Itoa(n))
		if n == 4 {
			s.Tags["vk-node"] = "other"
		}
		if _, err := d.Start(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	c.SetPage(2)
	all, err := d.List(t.Context(), map[string]string{"vk-cluster": "home", "vk-node": "vk"})
	if err != nil || len(all) != 4 || all[3].Address != "198.51.100.4:6421" || all[3].IP != "10.0.0.4" {
		t.Errorf("got %+v, %v", all, err)
	}
	if err := d.Tag(t.Context(), all[0].ID, map[string]string{"vk-uid": "u"}); err != nil {
		t.Error(err)
	}
	if m, found, err := d.Describe(t.Context(), all[0].ID); err != nil || !found || m.Tags["vk-uid"] != "u" {
		t.Errorf("got %+v, %t, %v", m, found, err)
	}
	if _, found, err := d.Describe(t.Context(), "i-0"); found || err != nil {
		t.Errorf("one that is not there: %t, %v", found, err)
	}
	if text, err := d.Console(t.Context(), all[0].ID); text != "booted" || err != nil {
		t.Errorf("the console: %q, %v", text, err)
	}
	if err := d.Stop(t.Context(), all[0].ID); err != nil {
		t.Error(err)
	}
	if err := d.Stop(t.Context(), "i-0"); !errdefs.IsNotFound(err) {
		t.Errorf("stop what is not there: %v", err)
	}
	c.Break(emulator.Fault{Operations: []string{"DescribeInstances"}, Answer: emulated.Refuse(http.StatusInternalServerError, "InternalError")})
	if all, err := d.List(t.Context(), nil); err == nil || all != nil {
		t.Errorf("an outage is a list of %d", len(all))
	}
}

// TestEC2ListMeansItsTags: wildcard characters of EC2 filters have no special meaning in a tag.
func TestEC2ListMeansItsTags(t *testing.T) {
	d, c := start(t, Config{})
	if _, err := d.List(t.Context(), map[string]string{"vk-node": `a*b?c\`}); err != nil {
		t.Fatal(err)
	}
	if got := lastRequest(t, c, "DescribeInstances").Get("Filter.1.Value.1"); got != `a\*b\?c\\` {
		t.Errorf("asked for %s", got)
	}
}

// TestEC2States: a machine has the state of its instance, or Unknown for a state that this version does not know.
func TestEC2States(t *testing.T) {
	d, c := start(t, Config{})
	m, err := d.Start(t.Context(), spec("token-1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		state, code string
		want        machine.State
		reason      string
	}{
		{"pending", "", machine.Starting, ""}, {"running", "", machine.Running, ""}, {"shutting-down", "Server.SpotInstanceTermination", machine.Stopping, machine.ReasonPreempted},
		{"stopped", "", machine.Stopping, ""}, {"terminated", "Client.InstanceInitiatedShutdown", machine.Gone, "Client.InstanceInitiatedShutdown"}, {"new", "", machine.Unknown, ""},
	} {
		c.SetState(m.ID, s.state, s.code)
		got, _, err := d.Describe(t.Context(), m.ID)
		if err != nil || got.State != s.want || got.Reason != s.reason {
			t.Errorf("%s: got %d %q, %v", s.state, got.State, got.Reason, err)
		}
	}
}

// TestEC2Refusals: each code determines whether an instance may exist, and the next action of the provider.
func TestEC2Refusals(t *testing.T) {
	d, c := start(t, Config{})
	for code, want := range map[string]machine.Refusal{
		"InsufficientInstanceCapacity": machine.NoCapacity, "Unsupported": machine.NoCapacity, "VcpuLimitExceeded": machine.Quota, "InsufficientFreeAddressesInSubnet": machine.Quota,
		"MaxSpotInstanceCountExceeded": machine.Quota, "RequestLimitExceeded": machine.Throttled, "UnauthorizedOperation": machine.Denied, "InvalidAMIID.NotFound": machine.Denied,
		"InternalError": 0, "SomethingNew": 0,
	} {
		status := http.StatusBadRequest
		if code == "InternalError" {
			status = http.StatusInternalServerError
		}
		mend := c.Break(emulator.Fault{Operations: []string{"RunInstances"}, Answer: emulated.Refuse(status, code)})
		began := time.Now()
		_, err := d.Start(t.Context(), spec("token-1"))
		mend()
		if err == nil || machine.RefusalOf(err) != want || errdefs.IsInvalidInput(err) {
			t.Errorf("%s: got %v of kind %d, want kind %d", code, err, machine.RefusalOf(err), want)
		}
		if text, _ := json.Marshal(err.Error()); !strings.Contains(string(text), code) {
			t.Errorf("%s: %s does not name the code", code, text)
		}
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("%s: it was tried again for %s", code, d)
		}
	}
}
