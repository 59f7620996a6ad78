module github.com/virtual-kubelet/virtual-kubelet/test/conformance

go 1.26.0

require (
	github.com/google/go-containerregistry v0.21.7
	github.com/virtual-kubelet/virtual-kubelet v0.0.0
	golang.org/x/sys v0.49.0
)

require (
	github.com/docker/cli v29.5.3+incompatible // indirect
	github.com/docker/docker-credential-helpers v0.9.3 // indirect
	github.com/klauspost/compress v1.18.6 // indirect
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/opencontainers/image-spec v1.1.1 // indirect
	github.com/sirupsen/logrus v1.9.4 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260526163538-3dc84a4a5aaa // indirect
	google.golang.org/grpc v1.82.1 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
	gotest.tools/v3 v3.5.2 // indirect
	k8s.io/cri-api v0.37.1 // indirect
)

replace github.com/virtual-kubelet/virtual-kubelet => ../..
