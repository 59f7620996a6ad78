// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestMoto uses moto, an independent emulator of AWS, for the services that moto does well: Secrets Manager and
// CloudWatch Logs. Botocore's own validator compares the requests to our emulator with the descriptions in
// botocore. hack/test-moto.sh starts moto.
func TestMoto(t *testing.T) {
	at := os.Getenv("MOTO_URL")
	if at == "" {
		t.Skip("hack/test-moto.sh gives an address of moto")
	}
	useKey(t)
	c, err := newClient(t.Context(), testConfig(t, func(c *Config) { c.Endpoint = at }))
	if err != nil {
		t.Fatal(err)
	}
	var report strings.Builder
	passed := func(what string) { fmt.Fprintf(&report, "- %s\n", what) }
	motoSecrets(t, c, passed)
	motoLogs(t, c, passed)
	life := motoLife(t, textual(t, at))
	version, counts := validated(t)
	fmt.Fprintf(&report, "\nRequests of the life of pods, recorded by the emulator and taken by `ParamValidator` of botocore %s, which refused one with a field too many:\n\n| Operation | Requests |\n|---|---|\n", version)
	for _, op := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&report, "| %s | %d |\n", op, counts[op])
	}
	if file := os.Getenv("MOTO_REPORT"); file != "" && !t.Failed() {
		text := "# Provider fargate on moto, and its requests by botocore\n\nWritten by `make moto`. moto is that of Debian 13 (python3-moto 5.1.1).\n\nThe whole provider on ECS and Secrets Manager of moto, which tells states of tasks and runs nothing; " +
			"it ignores client tokens, keeps no groups, has no clock that stops tasks, and deregisters definitions but cannot delete them:\n\n" + life + "\nOn Secrets Manager and CloudWatch Logs of moto:\n\n" + report.String()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // it is read by all
			t.Fatal(err)
		}
	}
}

func motoSecrets(t *testing.T, c *client, passed func(string)) {
	t.Helper()
	cluster := fmt.Sprint("c", time.Now().UnixNano())
	key, err := c.key(t.Context(), cluster)
	again, errAgain := c.key(t.Context(), cluster)
	if err != nil || errAgain != nil || len(key) != 32 || !bytes.Equal(key, again) {
		t.Fatalf("the key: %d and %d bytes, %v, %v", len(key), len(again), err, errAgain)
	}
	passed("the key of names is made once, and read by the second who asks")
	s := secret{name: "vk-" + cluster, owner: identity.Owner{Cluster: cluster, Node: "node"}, text: `{"A":"b"}`}
	arn, err := c.keep(t.Context(), s)
	same, errSame := c.keep(t.Context(), s)
	if err != nil || errSame != nil || arn == "" || arn != same {
		t.Errorf("a secret that is kept twice: %q, %q, %v, %v", arn, same, err, errSame)
	}
	passed("a secret that is kept twice has one ARN")
	s.own, s.text = true, "changed"
	same, err = c.keep(t.Context(), s)
	value, errValue := c.secrets.GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{SecretId: &s.name})
	if err != nil || errValue != nil || same != arn || aws.ToString(value.SecretString) != "changed" {
		t.Errorf("the secret of one pod: %q, %v, %v", same, err, errValue)
	}
	passed("the secret of one pod is replaced, and keeps its ARN")
	if err := c.drop(t.Context(), s.name); err != nil {
		t.Error(err)
	}
	if _, err := c.secrets.GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{SecretId: &s.name}); !errdefs.IsNotFound(kind(err, "read")) {
		t.Errorf("a secret that was removed: %v", err)
	}
	passed("it is gone once it was removed, with an error of the kind not-found")
}

func motoLogs(t *testing.T, c *client, passed func(string)) {
	t.Helper()
	group, stream := fmt.Sprint("/vk/", time.Now().UnixNano()), "vk/main/1"
	if _, _, err := c.log(t.Context(), group, stream, "", time.Time{}); !errdefs.IsNotFound(err) || !strings.Contains(err.Error(), "log group") {
		t.Errorf("a group that is not there: %v", err)
	}
	if _, err := c.logs.CreateLogGroup(t.Context(), &cloudwatchlogs.CreateLogGroupInput{LogGroupName: &group}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.log(t.Context(), group, stream, "", time.Time{}); !errdefs.IsNotFound(err) {
		t.Errorf("a stream that is not there: %v", err)
	}
	passed("a group and a stream that are not there are errors of the kind not-found; moto has the words for the group in both")
	if _, err := c.logs.CreateLogStream(t.Context(), &cloudwatchlogs.CreateLogStreamInput{LogGroupName: &group, LogStreamName: &stream}); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	put := func(from, to int) {
		var events []cwtypes.InputLogEvent
		for i := from; i < to; i++ {
			events = append(events, cwtypes.InputLogEvent{Timestamp: aws.Int64(now.Add(time.Duration(i) * time.Millisecond).UnixMilli()), Message: aws.String(fmt.Sprint("line ", i))})
		}
		if _, err := c.logs.PutLogEvents(t.Context(), &cloudwatchlogs.PutLogEventsInput{LogGroupName: &group, LogStreamName: &stream, LogEvents: events}); err != nil {
			t.Fatal(err)
		}
	}
	read := func(token string, since time.Time) (n int, next string) {
		for {
			lines, next, err := c.log(t.Context(), group, stream, token, since)
			if err != nil {
				t.Fatal(err)
			}
			if n += len(lines); next == token {
				return n, next
			}
			token = next
		}
	}
	put(0, 3000)
	n, token := read("", time.Time{})
	if n != 3000 {
		t.Errorf("%d lines were read, want 3000", n)
	}
	passed("3000 lines are read by their pages, to a token that stays")
	put(3000, 3010)
	if n, _ := read(token, time.Time{}); n != 10 {
		t.Errorf("%d lines follow, want 10", n)
	}
	passed("lines that come later are read from that token on")
	if n, _ := read("", now.Add(2900*time.Millisecond)); n != 110 {
		t.Errorf("%d lines since a time, want 110", n)
	}
	passed("lines since a time are these and no others")
}

// textual is a proxy before moto. Moto writes the size of a container as a number, while the vendor's model has
// a string.
func textual(t *testing.T, at string) string {
	t.Helper()
	to, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	number := regexp.MustCompile(`"(cpu|memory)": (\d+)`)
	proxy.ModifyResponse = func(r *http.Response) error {
		if !strings.HasSuffix(r.Request.Header.Get("X-Amz-Target"), "Task") && !strings.HasSuffix(r.Request.Header.Get("X-Amz-Target"), "Tasks") {
			return nil
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		body = number.ReplaceAll(body, []byte(`"$1": "$2"`))
		body = bytes.ReplaceAll(body, []byte(`"lastStatus": "PENDING"`), []byte(`"lastStatus": "RUNNING"`)) // moto never changes the first state of containers
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Set("Content-Length", strconv.Itoa(len(body)))
		return nil
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}

// motoLife runs pods on moto: one pod is created, runs and is deleted. Another process finds and deletes a
// second pod.
func motoLife(t *testing.T, at string) string {
	t.Helper()
	var report strings.Builder
	passed := func(what string) { fmt.Fprintf(&report, "- %s\n", what) }
	// By default, moto lets a task stop after some requests.
	transition := `{"model_name": "ecs::task", "transition": {"progression": "manual", "times": 100000}}`
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+"/moto-api/state-manager/set-transition", strings.NewReader(transition))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil || answer.StatusCode >= http.StatusMultipleChoices {
		t.Fatal(answer, err)
	}
	answer.Body.Close()
	var clock aheadBy
	start := func() (*driver, func()) {
		conf := testConfig(t, func(c *Config) { c.Endpoint, c.LogGroup, c.Cluster = at, "", "lives" })
		c, err := newClient(t.Context(), conf)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.ecs.CreateCluster(t.Context(), &awsecs.CreateClusterInput{ClusterName: aws.String("lives")}); err != nil {
			t.Fatal(err)
		}
		conf.Subnets, conf.SecurityGroups = []string{motoID(t, c, "DescribeSubnets", "subnetId")}, []string{motoID(t, c, "DescribeSecurityGroups", "groupId")}
		d, err := newDriver(t.Context(), cli.ProviderInput{NodeName: "moto"}, conf, quick)
		if err != nil {
			t.Fatal(err)
		}
		d.sweeper.every, d.sweeper.now = 200*time.Millisecond, clock.now
		d.kit.UsePodObjects(values{})
		d.kit.UsePodTokens(values{})
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		done := make(chan error, 1)
		go func() { done <- d.kit.RunInBackground(ctx) }()
		if err := d.kit.Cache().Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		return d, func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	withMemory := func(pod *corev1.Pod) *corev1.Pod {
		pod.Spec.Containers[0].Resources.Limits = list("100m", "64Mi")
		return pod
	}
	withSecrets := func(name string) *corev1.Pod {
		pod := named(variables(name))
		main := &pod.Spec.Containers[0]
		main.Env = append(main.Env, corev1.EnvVar{Name: "URL", Value: "$(NAME):$(PASSWORD)"})
		return withMemory(pod)
	}
	// moto wants a memory limit for each container, but the container that writes the files of a token has none.
	d, stop := start()
	api := d.client
	left := func(pod *corev1.Pod) (own, shared []string, active bool) {
		t.Helper()
		all, err := api.listSecrets(t.Context(), []string{"vk-"})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			switch name := ownName(d.mapping.owner, pod.UID); {
			case strings.HasPrefix(s.name, name):
				own = append(own, s.name)
			case strings.HasPrefix(s.name, sharedPrefix(d.mapping.owner)):
				shared = append(shared, s.name)
			}
		}
		families, err := api.families(t.Context(), ownName(d.mapping.owner, pod.UID), ecstypes.TaskDefinitionFamilyStatusActive)
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			_, err := api.describeDefinition(t.Context(), family)
			active = active || err == nil
		}
		return own, shared, active
	}
	gone := func(pod *corev1.Pod) {
		t.Helper()
		tick := everyMoment(t)
		for {
			own, _, active := left(pod)
			if len(own) == 0 && !active {
				return
			}
			tick(fmt.Sprintf("the secrets %v of a pod are removed, and its definition is not active: %t", own, active))
		}
	}
	pod, orphan, sharing := withSecrets("moto"), withSecrets("orphan"), withMemory(variables("shares"))
	for _, pod := range []*corev1.Pod{sharing, pod, orphan} {
		if err := d.kit.CreatePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		until(t, d, pod.Name, "running", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
		if own, shared, active := left(pod); len(shared) != 1 || (len(own) != 1 || !active) && pod != sharing {
			t.Errorf("a pod that runs has the secrets %v and %v, and a definition: %t", own, shared, active)
		}
	}
	passed("pods with a password are created and run; one that has it beside its name in a variable has a secret and a definition of its own, and another one a secret that pods may share")
	end(t, d, sharing)
	end(t, d, pod)
	gone(pod)
	if _, shared, _ := left(pod); len(shared) != 1 {
		t.Errorf("of the shared secret there are %v", shared)
	}
	passed("the pod is deleted: its task stops, its secret is removed, its definition is deregistered, and the shared secret stays")
	stop()
	d, stop = start()
	defer stop()
	all, err := d.kit.GetPods(t.Context())
	if err != nil || len(all) != 1 || all[0].UID != orphan.UID {
		t.Fatalf("another process finds the pods %v, %v", all, err)
	}
	end(t, d, all[0])
	clock.forward(2 * ownFor) // a process leaves things of other processes alone for this long
	gone(orphan)
	passed("the task of a pod that the cluster does not have any more is found by another process, deleted, and its secret and definition with it")
	return report.String()
}

// motoID returns the ID of the first default object of this kind in moto's EC2.
func motoID(t *testing.T, c *client, action, element string) string {
	t.Helper()
	var out struct {
		Text string `xml:",innerxml"`
	}
	form := url.Values{"Action": {action}, "Version": {"2016-11-15"}}
	if err := c.signed.query(t.Context(), "ec2", c.signed.endpoint, c.signed.region, form, &out); err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(out.Text, "<"+element+">")
	id, _, found := strings.Cut(after, "<")
	if !found {
		t.Fatalf("%s has no %s: %s", action, element, out.Text)
	}
	return id
}

// validated checks the requests of a few pods against botocore's descriptions.
func validated(t *testing.T) (version string, counts map[string]int) {
	t.Helper()
	c := cloudOf(t)
	p := open(t, c)
	p.kit.UsePodTokens(values{})
	p.kit.UsePullCredentials(values{})
	if err := p.Examine(t.Context()); err != nil {
		t.Fatal(err)
	}
	pod := podOf("pod", program.Program{Stay: program.Forever})
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	main := &pod.Spec.Containers[0]
	main.Image = "private.example/program"
	main.Env = []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "p"}}}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: token}, {Name: "keys", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "keys"}}}}
	if err := p.kit.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	until(t, p, "pod", "running", isRunning)
	if err := p.kit.RunInContainer(t.Context(), "shop", "pod", "main", append([]string{"program"}, program.Program{}.Args()...), &caller{}); err != nil {
		t.Error(err)
	}
	m := p.mapping // and a definition with every part
	large, err := m.definition(testResolved(testPod()), map[string]string{"main": "arn:s"})
	if err == nil {
		large.Family = aws.String("vk-large")
		_, err = p.client.register(t.Context(), large)
	}
	if err != nil && !strings.Contains(err.Error(), testRole) {
		t.Error(err)
	}
	if err := p.kit.DeletePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	tick := everyMoment(t)
	for len(c.Requests("DeleteSecret")) < 2 {
		tick("its secret is removed")
	}
	services := map[string]string{"AmazonEC2ContainerServiceV20141113": "ecs", "secretsmanager": "secretsmanager", "Logs_20140328": "logs", "AmazonSQS": "sqs", "ServiceQuotasV20190624": "service-quotas"}
	var lines bytes.Buffer
	var names []string
	add := func(service, operation, params string) {
		fmt.Fprintf(&lines, "{\"service\":%q,\"operation\":%q,\"params\":%s}\n", service, operation, params)
		names = append(names, operation)
	}
	for _, r := range c.Requests() {
		prefix, _, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		if service := services[prefix]; service != "" {
			add(service, r.Operation, string(r.Body))
		}
	}
	add("ecs", "ListTasks", `{"startedBi":"x"}`)
	python := exec.CommandContext(t.Context(), "/usr/bin/python3", "testdata/validate.py")
	python.Stdin, python.Env = &lines, os.Environ()
	python.Stderr = os.Stderr
	out, err := python.Output()
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(said) != len(names)+1 {
		t.Fatalf("%d answers for %d requests", len(said)-1, len(names))
	}
	counts = map[string]int{}
	for i, name := range names {
		var wrong string
		if err := json.Unmarshal([]byte(said[i+1]), &wrong); err != nil {
			t.Fatal(err)
		}
		if last := i == len(names)-1; (wrong != "") != last {
			t.Errorf("%s: botocore says %q", name, wrong)
		} else if !last {
			counts[name]++
		}
	}
	return said[0], counts
}
