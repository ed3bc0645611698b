// @ts-check
// The SDK uses Promise.withResolvers, which node has from version 22 on. Import
// this first, so that the services also run on node 20.
Promise.withResolvers ??= function withResolvers() {
  let resolve, reject;
  const promise = new this((res, rej) => {
    resolve = res;
    reject = rej;
  });
  return { promise, resolve, reject };
};
