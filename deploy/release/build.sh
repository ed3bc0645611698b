#!/bin/sh
# Builds the release in bin/release: for each architecture a tarball and a Debian package, and the
# checksums of all. Run by make release, which sets VERSION, LDFLAGS, PGO and the tools. Equal sources
# give equal files.
set -eu
out=bin/release
rm -rf "$out"
mkdir -p "$out"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

# Debian's versions begin with a digit. A build without a release is before the next one.
case $VERSION in
v[0-9]*) package_version=$(printf %s "${VERSION#v}" | sed "s/-/~/; s/-/./g") ;;
*) package_version=0.0.0~$(printf %s "$VERSION" | tr - .) ;;
esac

# archive packs a directory of $1 without what differs between equal builds.
archive() {
	tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" -C "$1" -c "$2" | gzip -9 -n
}

for arch in $ARCHS; do
	tree=$out/platform-$VERSION-linux-$arch
	mkdir -p "$tree/bin" "$tree/completions" "$tree/systemd" "$tree/prometheus" "$tree/grafana"
	GOOS=linux GOARCH=$arch CGO_ENABLED=0 go build -trimpath ${PGO:+"$PGO"} -ldflags "$LDFLAGS" -o "$tree/bin/" ./cmd/platform-server ./cmd/platform
	for shell in bash zsh fish; do
		go run ./cmd/platform completions generate "$shell" >"$tree/completions/platform.$shell"
	done
	go run -ldflags "$LDFLAGS" ./cmd/platform/internal/manpages "$tree/man"
	gzip -9 -n "$tree"/man/*.1
	go run ./deploy/release/sbom "$VERSION" "$tree/bin/platform-server" "$tree/bin/platform" >"$tree/sbom.cdx.json"
	sed 's#/usr/local/bin/#/usr/bin/#' deploy/platform-server.service >"$tree/systemd/platform-server.service"
	cp deploy/prometheus/alerts.yml "$tree/prometheus/"
	cp deploy/grafana/platform.json "$tree/grafana/"
	cp LICENSE CHANGELOG.md deploy/release/platform.toml "$tree/"
	cp bin/licenses.csv "$tree/THIRD_PARTY_LICENSES.csv"
	archive bin third_party >"$tree/third_party.tar.gz" # texts of the licences, and sources where these require it
	VERSION=$package_version ARCH=$arch TREE=$tree $NFPM package --config deploy/release/nfpm.yaml --packager deb \
		--target "$out/platform_${package_version}_$arch.deb"
	archive "$out" "${tree##*/}" >"$tree.tar.gz"
	cp "$tree/sbom.cdx.json" "$tree.sbom.cdx.json"
	rm -r "$tree"
done
cd "$out"
sha256sum ./*.* >SHA256SUMS
cat SHA256SUMS
