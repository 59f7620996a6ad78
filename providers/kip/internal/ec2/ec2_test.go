// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
)

// cloud emulates the query API of EC2, version 2016-11-15. Its instances run no machine.
type cloud struct {
	mu       sync.Mutex
	all      []*instance           // guarded by mu
	requests map[string]url.Values // guarded by mu; the last request by action
	refuse   map[string]string     // guarded by mu; error codes by action
	page     int                   // guarded by mu; instances on a page
	hidden   bool                  // guarded by mu; lists lack new instances
}

type instance struct {
	XMLName   xml.Name `xml:"item"`
	ID        string   `xml:"instanceId"`
	State     string   `xml:"instanceState>name"`
	IP        string   `xml:"privateIpAddress"`
	Public    string   `xml:"ipAddress"`
	Type      string   `xml:"instanceType"`
	Launch    string   `xml:"launchTime"`
	Lifecycle string   `xml:"instanceLifecycle,omitempty"`
	Code      string   `xml:"stateReason>code,omitempty"`
	Tags      []tag    `xml:"tagSet>item"`
	token     string
	params    string
}

type tag struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

func (i *instance) setTag(k, v string) {
	for n := range i.Tags {
		if i.Tags[n].Key == k {
			i.Tags[n].Value = v
			return
		}
	}
	i.Tags = append(i.Tags, tag{k, v})
}

// names are the parameters that the emulator knows, without indexes. Source: the service model of the SDK, 2016-11-15.
var names = map[string]string{
	"RunInstances": " Action Version ClientToken MinCount MaxCount ImageId InstanceType UserData InstanceInitiatedShutdownBehavior MetadataOptions.HttpTokens" +
		" MetadataOptions.HttpPutResponseHopLimit MetadataOptions.HttpEndpoint NetworkInterface.DeviceIndex NetworkInterface.SubnetId NetworkInterface.SecurityGroupId" +
		" NetworkInterface.DeleteOnTermination NetworkInterface.AssociatePublicIpAddress InstanceMarketOptions.MarketType InstanceMarketOptions.SpotOptions.SpotInstanceType" +
		" InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior TagSpecification.ResourceType TagSpecification.Tag.Key TagSpecification.Tag.Value" +
		" BlockDeviceMapping.DeviceName BlockDeviceMapping.Ebs.VolumeSize BlockDeviceMapping.Ebs.DeleteOnTermination BlockDeviceMapping.Ebs.VolumeType" +
		" IamInstanceProfile.Arn IamInstanceProfile.Name ",
	"DescribeInstances":  " Action Version Filter.Name Filter.Value MaxResults NextToken ",
	"TerminateInstances": " Action Version InstanceId ",
	"CreateTags":         " Action Version ResourceId Tag.Key Tag.Value ",
	"GetConsoleOutput":   " Action Version InstanceId ",
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := r.ParseForm(); err != nil || !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256") {
		c.fail(w, http.StatusForbidden, "AuthFailure")
		return
	}
	action := r.PostForm.Get("Action")
	c.requests[action] = r.PostForm
	for name := range r.PostForm {
		if plain := withoutIndexes(name); !strings.Contains(names[action], " "+plain+" ") {
			c.fail(w, http.StatusBadRequest, "UnknownParameter: "+plain)
			return
		}
	}
	if code := c.refuse[action]; code != "" {
		status := http.StatusBadRequest
		if code == "InternalError" {
			status = http.StatusInternalServerError
		}
		c.fail(w, status, code)
		return
	}
	switch action {
	case "RunInstances":
		c.run(w, r.PostForm)
	case "DescribeInstances":
		c.describe(w, r.PostForm)
	case "TerminateInstances", "CreateTags", "GetConsoleOutput":
		c.change(w, action, r.PostForm)
	default:
		c.fail(w, http.StatusBadRequest, "InvalidAction")
	}
}

// withoutIndexes removes the numbers from the name of a parameter.
func withoutIndexes(name string) string {
	parts := slices.DeleteFunc(strings.Split(name, "."), func(p string) bool { _, err := strconv.Atoi(p); return err == nil })
	return strings.Join(parts, ".")
}

func (c *cloud) fail(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Response><Errors><Error><Code>%s</Code><Message>because of a test</Message></Error></Errors><RequestID>r-1</RequestID></Response>", code)
}

func (c *cloud) run(w http.ResponseWriter, in url.Values) {
	rest := maps.Clone(in)
	params := rest.Encode()
	for _, i := range c.all {
		if i.token != in.Get("ClientToken") {
			continue
		}
		if i.params != params {
			c.fail(w, http.StatusBadRequest, "IdempotentParameterMismatch")
			return
		}
		c.answer(w, "RunInstances", "instancesSet", "", i)
		return
	}
	n := len(c.all) + 1
	i := &instance{
		ID: fmt.Sprintf("i-%017x", n), State: "pending", IP: fmt.Sprintf("10.0.0.%d", n), Public: fmt.Sprintf("198.51.100.%d", n), Type: in.Get("InstanceType"),
		Launch: "2026-01-01T00:00:00.000Z", token: in.Get("ClientToken"), params: params,
	}
	if in.Get("InstanceMarketOptions.MarketType") == "spot" {
		i.Lifecycle = "spot"
	}
	for n := 1; in.Get(fmt.Sprintf("TagSpecification.%d.ResourceType", n)) != ""; n++ {
		if in.Get(fmt.Sprintf("TagSpecification.%d.ResourceType", n)) != "instance" {
			continue
		}
		for k := 1; in.Get(fmt.Sprintf("TagSpecification.%d.Tag.%d.Key", n, k)) != ""; k++ {
			i.setTag(in.Get(fmt.Sprintf("TagSpecification.%d.Tag.%d.Key", n, k)), in.Get(fmt.Sprintf("TagSpecification.%d.Tag.%d.Value", n, k)))
		}
	}
	c.all = append(c.all, i)
	c.answer(w, "RunInstances", "instancesSet", "", i)
}

func (c *cloud) describe(w http.ResponseWriter, in url.Values) {
	var some []*instance
	for _, i := range c.all {
		if !c.hidden && i.matches(in) {
			some = append(some, i)
		}
	}
	from, _ := strconv.Atoi(in.Get("NextToken"))
	to, next := len(some), ""
	if c.page > 0 && from+c.page < to {
		to = from + c.page
		next = strconv.Itoa(to)
	}
	c.answer(w, "DescribeInstances", "reservationSet", next, some[from:to]...)
}

func (i *instance) matches(in url.Values) bool {
	for n := 1; in.Get(fmt.Sprintf("Filter.%d.Name", n)) != ""; n++ {
		name, value := in.Get(fmt.Sprintf("Filter.%d.Name", n)), in.Get(fmt.Sprintf("Filter.%d.Value.1", n))
		has := name == "instance-id" && value == i.ID || name == "client-token" && value == i.token
		for _, t := range i.Tags {
			has = has || name == "tag:"+t.Key && value == t.Value
		}
		if !has {
			return false
		}
	}
	return true
}

func (c *cloud) change(w http.ResponseWriter, action string, in url.Values) {
	id := in.Get("InstanceId") + in.Get("InstanceId.1") + in.Get("ResourceId.1")
	n := slices.IndexFunc(c.all, func(i *instance) bool { return i.ID == id })
	if n < 0 {
		c.fail(w, http.StatusBadRequest, "InvalidInstanceID.NotFound")
		return
	}
	switch action {
	case "TerminateInstances":
		c.all[n].State, c.all[n].Code = "shutting-down", "Client.UserInitiatedShutdown"
	case "CreateTags":
		for k := 1; in.Get(fmt.Sprintf("Tag.%d.Key", k)) != ""; k++ {
			c.all[n].setTag(in.Get(fmt.Sprintf("Tag.%d.Key", k)), in.Get(fmt.Sprintf("Tag.%d.Value", k)))
		}
	case "GetConsoleOutput":
		fmt.Fprintf(w, "<GetConsoleOutputResponse><instanceId>%s</instanceId><output>%s</output></GetConsoleOutputResponse>", id, base64.StdEncoding.EncodeToString([]byte("booted")))
		return
	}
	fmt.Fprintf(w, "<%[1]sResponse><return>true</return></%[1]sResponse>", action)
}

func (c *cloud) answer(w http.ResponseWriter, action, set, next string, some ...*instance) {
	var items strings.Builder
	for _, i := range some {
		text, _ := xml.Marshal(i) // it is made of texts
		if set == "reservationSet" {
			text = fmt.Appendf(nil, "<item><reservationId>r</reservationId><instancesSet>%s</instancesSet></item>", text)
		}
		items.Write(text)
	}
	if next != "" {
		next = "<nextToken>" + next + "</nextToken>"
	}
	fmt.Fprintf(w, "<%[1]sResponse><%[2]s>%[3]s</%[2]s>%[4]s</%[1]sResponse>", action, set, items.String(), next)
}

func start(t *testing.T, c Config) (*Driver, *cloud) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "AK")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "SK")
	emulated := &cloud{requests: map[string]url.Values{}, refuse: map[string]string{}}
	s := httptest.NewServer(emulated)
	t.Cleanup(s.Close)
	c.Region, c.Endpoint, c.SubnetID = "us-east-1", s.URL, "subnet-1"
	d, err := New(t.Context(), c, 6421)
	if err != nil {
		t.Fatal(err)
	}
	return d, emulated
}

func spec(token string) machine.Spec {
	return machine.Spec{
		Token: token, Type: machine.Type{Name: "t3.nano"}, Image: "ami-1", UserData: []byte(`{"a": "b"}`), VolumeGiB: 8,
		Tags: map[string]string{"vk-cluster": "home", "vk-node": "vk", "vk-token": token},
	}
}

// TestEC2StartEndsByItself: the request has everything that a later request would add too late: tags of all billed resources, the token, and termination
// at power-off.
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
	in := c.requests["RunInstances"]
	want := map[string]string{
		"ClientToken": "token-1", "InstanceInitiatedShutdownBehavior": "terminate", "MinCount": "1", "MaxCount": "1", "MetadataOptions.HttpTokens": "required",
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
	c.mu.Lock()
	c.hidden = true
	c.mu.Unlock()
	if _, err := d.Start(t.Context(), changed); err == nil || machine.RefusalOf(err) != 0 || errdefs.IsInvalidInput(err) {
		t.Errorf("while lists lack it: %v, want an error that says nothing of the machine", err)
	}
	if len(c.all) != 1 {
		t.Errorf("%d instances", len(c.all))
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
	c.mu.Lock()
	c.page = 2
	c.mu.Unlock()
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
	c.mu.Lock()
	c.refuse["DescribeInstances"] = "InternalError"
	c.mu.Unlock()
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
	if got := c.requests["DescribeInstances"].Get("Filter.1.Value.1"); got != `a\*b\?c\\` {
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
		c.mu.Lock()
		c.all[0].State, c.all[0].Code = s.state, s.code
		c.mu.Unlock()
		got, _, err := d.Describe(t.Context(), m.ID)
		if err != nil || got.State != s.want || got.Reason != s.reason {
			t.Errorf("%s: got %d %q, %v", s.state, got.State, got.Reason, err)
		}
	}
}

// TestEC2Refusals: each code tells whether an instance may exist, and the next action of the provider.
func TestEC2Refusals(t *testing.T) {
	d, c := start(t, Config{})
	for code, want := range map[string]machine.Refusal{
		"InsufficientInstanceCapacity": machine.NoCapacity, "Unsupported": machine.NoCapacity, "VcpuLimitExceeded": machine.Quota, "InsufficientFreeAddressesInSubnet": machine.Quota,
		"MaxSpotInstanceCountExceeded": machine.Quota, "RequestLimitExceeded": machine.Throttled, "UnauthorizedOperation": machine.Denied, "InvalidAMIID.NotFound": machine.Denied,
		"InternalError": 0, "SomethingNew": 0,
	} {
		c.mu.Lock()
		c.refuse["RunInstances"] = code
		c.mu.Unlock()
		began := time.Now()
		_, err := d.Start(t.Context(), spec("token-1"))
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
