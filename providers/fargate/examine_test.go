// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/ecs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestDoctor makes mistakes in the setup. Doctor must report each of them, with a remedy.
func TestDoctor(t *testing.T) {
	without := func(action string) func(*ecs.Config) {
		return func(c *ecs.Config) {
			allow := append(policy(t), "ec2:DescribeSubnets", "ec2:DescribeSecurityGroups", "iam:GetRole", "servicequotas:GetServiceQuota")
			c.Keys[testKey] = ecs.Key{Secret: testSecret, Allow: slices.DeleteFunc(allow, func(a string) bool { return a == action })}
		}
	}
	for name, c := range map[string]struct {
		cloud  func(*ecs.Config)
		config func(*Config)
		env    [2]string
		fault  emulator.Fault
		want   string // "" means no problem
	}{
		"well":                          {},
		"well with all rights":          {cloud: without("")},
		"well without the lookups":      {cloud: func(c *ecs.Config) { c.Keys[testKey] = ecs.Key{Secret: testSecret, Allow: policy(t)} }},
		"wrong region":                  {config: func(c *Config) { c.Region = "eu-west-1" }, want: "in another region than it names: look at region"},
		"wrong cluster":                 {config: func(c *Config) { c.Cluster = "other" }, want: "make it, or configure cluster and region"},
		"wrong log group":               {config: func(c *Config) { c.LogGroup = "/other" }, want: "make the group, or configure logGroup"},
		"no such subnet":                {config: func(c *Config) { c.Subnets = []string{"subnet-1", "subnet-2"} }, want: "look for subnet-2 of subnets"},
		"no such security group":        {config: func(c *Config) { c.SecurityGroups = []string{"sg-2"} }, want: "configure an existing one in the VPC"},
		"no such execution role":        {config: func(c *Config) { c.ExecutionRole += "s" }, want: "make it, or configure executionRole"},
		"no such role for exec":         {config: func(c *Config) { c.ExecRole += "s" }, want: "make it, or configure execRole"},
		"a role that trusts no task":    {config: func(c *Config) { c.ExecutionRole = "arn:aws:iam::123456789012:role/strange" }, want: "let its trust policy name the service ecs-tasks"},
		"a quota below the capacity":    {cloud: func(c *ecs.Config) { c.VCPUs = 6 }, want: "may run 6 virtual CPUs of FARGATE at once, and capacity.cpu offers 20: lower it, or ask for more"},
		"no capacity provider":          {config: func(c *Config) { c.CapacityProvider = Spot }, want: "does not have the capacity provider FARGATE_SPOT"},
		"a capacity provider":           {cloud: func(c *ecs.Config) { c.CapacityProviders = []string{OnDemand, Spot} }, config: func(c *Config) { c.CapacityProvider = Spot }},
		"no such queue":                 {config: func(c *Config) { c.Queue += "s" }, want: "look at queue, or leave it out"},
		"no right to run tasks":         {cloud: without("ecs:RunTask"), want: "ecs:RunTask"},
		"no right to stop tasks":        {cloud: without("ecs:StopTask"), want: "ecs:StopTask"},
		"no right to register":          {cloud: without("ecs:RegisterTaskDefinition"), want: "ecs:RegisterTaskDefinition"},
		"no right to execute":           {cloud: without("ecs:ExecuteCommand"), want: "ecs:ExecuteCommand"},
		"no right to list":              {cloud: without("ecs:ListTasks"), want: "ecs:ListTasks"},
		"no right to keep secrets":      {cloud: without("secretsmanager:CreateSecret"), want: "secretsmanager:CreateSecret"},
		"no right to restore secrets":   {cloud: without("secretsmanager:RestoreSecret"), want: "secretsmanager:RestoreSecret"},
		"no right to remove secrets":    {cloud: without("secretsmanager:DeleteSecret"), want: "secretsmanager:DeleteSecret"},
		"no right to look at the queue": {cloud: without("sqs:GetQueueAttributes"), want: "sqs:GetQueueAttributes"},
		"no right to read the queue":    {cloud: without("sqs:ReceiveMessage"), want: "sqs:ReceiveMessage"},
		"no right to empty the queue":   {cloud: without("sqs:DeleteMessage"), want: "sqs:DeleteMessage"},
		"no server":                     {config: func(c *Config) { c.Endpoint = "http://127.0.0.1:1" }, want: "connection refused"},
		"missing right": {cloud: func(c *ecs.Config) {
			c.Keys[testKey] = ecs.Key{Secret: testSecret, Allow: []string{"ecs:DescribeClusters"}}
		}, want: "the policy is in the README"},
		"expired credential":  {cloud: func(c *ecs.Config) { c.Keys[testKey] = ecs.Key{Secret: testSecret, Expires: time.Unix(1, 0)} }, want: "have expired: renew them"},
		"clock skew":          {cloud: func(c *ecs.Config) { c.Now = func() time.Time { return time.Now().Add(time.Hour) } }, want: "the clock of this machine is off"},
		"unknown key":         {env: [2]string{"AWS_ACCESS_KEY_ID", "AKIDOTHER"}, want: "the credentials are unknown"},
		"wrong secret":        {env: [2]string{"AWS_SECRET_ACCESS_KEY", "other"}, want: "the secret key is another one"},
		"a token too many":    {env: [2]string{"AWS_SESSION_TOKEN", "other"}, want: "the credentials are unknown"},
		"throttled":           {fault: emulator.Fault{Answer: ecs.Throttled}, want: "Rate exceeded"},
		"a service that ails": {fault: emulator.Fault{Answer: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusServiceUnavailable) }}, want: "503"},
	} {
		t.Run(name, func(t *testing.T) {
			cloud := cloudOf(t, func(conf *ecs.Config) {
				conf.Subnets, conf.SecurityGroups, conf.Roles = []string{"subnet-1"}, []string{"sg-1"}, []string{"execution", "exec", "strange"}
				if c.cloud != nil {
					c.cloud(conf)
				}
			})
			if c.env[0] != "" {
				t.Setenv(c.env[0], c.env[1])
			}
			if c.fault.Answer != nil {
				cloud.Break(c.fault)
			}
			conf, err := cloud.config("home")
			if err != nil {
				t.Fatal(err)
			}
			if c.config != nil {
				c.config(&conf)
			}
			p, err := newDriver(t.Context(), cli.ProviderInput{NodeName: "node"}, conf, quick)
			if err != nil {
				t.Fatal(err)
			}
			defer p.client.close()
			made := len(cloud.Secrets()) + cloud.Definitions()
			if err := p.Examine(t.Context()); (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), testSecret)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if now := len(cloud.Secrets()) + cloud.Definitions(); now != made {
				t.Error("it has made something")
			}
		})
	}
}

// TestDoctorTakesNoMessage checks that doctor leaves the messages of the queue: a message that doctor received
// would count as a failed delivery.
func TestDoctorTakesNoMessage(t *testing.T) {
	c := cloudOf(t)
	conf, err := c.config("home")
	if err != nil {
		t.Fatal(err)
	}
	withoutQueue := conf
	withoutQueue.Queue = ""
	var nodes [2]*driver
	for i, conf := range []Config{withoutQueue, conf} {
		if nodes[i], err = newDriver(t.Context(), cli.ProviderInput{NodeName: "node"}, conf, quick); err != nil {
			t.Fatal(err)
		}
		nodes[i].kit.UsePodObjects(values{})
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- nodes[0].kit.RunInBackground(ctx) }()
	if err := nodes[0].kit.CreatePod(t.Context(), podOf("web", program.Program{Stay: program.Forever})); err != nil {
		t.Error(err)
	}
	until(t, nodes[0], "web", "running", isRunning)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := nodes[1].Examine(t.Context()); err != nil {
		t.Error(err)
	}
	nodes[1].client.close()
	if c.Queued() == 0 || c.Given() > 0 {
		t.Errorf("of %d messages %d were given to doctor", c.Queued(), c.Given())
	}
}

// TestIAMOfPartitions checks the region of IAM, which is one region in each partition.
func TestIAMOfPartitions(t *testing.T) {
	key := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "x"}, nil
	})
	for region, want := range map[string][2]string{
		"eu-central-1": {"https://iam.amazonaws.com", "us-east-1"}, "cn-northwest-1": {"https://iam.cn-north-1.amazonaws.com.cn", "cn-north-1"},
		"us-gov-east-1": {"https://iam.us-gov.amazonaws.com", "us-gov-west-1"}, "us-east-1": {"https://iam.amazonaws.com", "us-east-1"},
	} {
		asked := ""
		answer := carrier(func(r *http.Request) (*http.Response, error) {
			asked = r.URL.Scheme + "://" + r.URL.Host + " " + r.Header.Get("Authorization")
			return nil, errors.New("no answer")
		})
		c := client{signed: signed{region: region, credentials: key, http: &http.Client{Transport: answer}}}
		if err := c.examineRoles(t.Context(), Config{Region: region, ExecutionRole: testRole}); err == nil {
			t.Error("no answer is no error")
		}
		if !strings.HasPrefix(asked, want[0]+" ") || !strings.Contains(asked, "/"+want[1]+"/iam/") {
			t.Errorf("%s: asked %s, want %v", region, asked, want)
		}
	}
}

// carrier is a transport made of a function.
type carrier func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) { return c(r) }

// TestDoctorAdvisesAgainstDockerHub checks the advice about a filesImage on Docker Hub. Every pod with a token pulls this image, and
// Docker Hub limits pulls without an account.
func TestDoctorAdvisesAgainstDockerHub(t *testing.T) {
	login := map[string]string{"docker.io": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:hub"}
	for _, c := range []struct {
		image  string
		logins map[string]string
		want   bool
	}{
		{"", nil, false}, {"busybox:stable", nil, true}, {"docker.io/library/busybox", nil, true}, {"busybox:stable", login, false},
		{"123456789012.dkr.ecr.eu-central-1.amazonaws.com/tools", nil, false},
	} {
		conf := testConfig(t, func(conf *Config) { conf.FilesImage, conf.RegistryCredentials, conf.LogGroup = c.image, c.logins, "" })
		var adviser cli.Adviser = advised{driver: &driver{config: conf}}
		if _, advice := adviser.Advise(t.Context()); (len(advice) > 0) != c.want {
			t.Errorf("filesImage %q with the logins %v: the advice is %v", c.image, c.logins, advice)
		}
	}
}

// TestDoctorAdvisesAgainstLogsForEver checks that doctor reports a log group without a retention, which keeps
// the logs of pods and costs money. It does not report a missing group, or a group that doctor may not read.
func TestDoctorAdvisesAgainstLogsForEver(t *testing.T) {
	for name, c := range map[string]struct {
		cloud func(*ecs.Config)
		want  bool
	}{
		"no retention": {func(*ecs.Config) {}, true},
		"that of another": {func(c *ecs.Config) {
			c.LogGroups, c.Retention = append(c.LogGroups, logGroup+"-2"), map[string]int{logGroup + "-2": 7}
		}, true},
		"a retention":      {func(c *ecs.Config) { c.Retention = map[string]int{logGroup: 30} }, false},
		"no group":         {func(c *ecs.Config) { c.LogGroups = []string{logGroup + "-2"} }, false},
		"no right to look": {func(c *ecs.Config) { c.Keys[testKey] = ecs.Key{Secret: testSecret, Allow: policy(t)} }, false},
		"a right to look": {func(c *ecs.Config) {
			c.Keys[testKey] = ecs.Key{Secret: testSecret, Allow: append(policy(t), "logs:DescribeLogGroups")}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			conf, err := cloudOf(t, c.cloud).config("home")
			if err != nil {
				t.Fatal(err)
			}
			d, err := newDriver(t.Context(), cli.ProviderInput{NodeName: "node"}, conf, quick)
			if err != nil {
				t.Fatal(err)
			}
			defer d.client.close()
			_, advice := advised{d.kit, d}.Advise(t.Context())
			if got := slices.ContainsFunc(advice, func(a cli.Advice) bool { return strings.Contains(a.Problem, "has no retention") }); got != c.want {
				t.Errorf("the advice is %v", advice)
			}
		})
	}
}
