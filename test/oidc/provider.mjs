// An OpenID Connect provider for tests: node provider.mjs PORT REDIRECT_URI…
// Every account exists, with any password. The groups of an account are the part of its name after a plus sign: ada+ops.

import Provider from 'oidc-provider'

const [port, ...redirects] = process.argv.slice(2)
const issuer = `http://127.0.0.1:${port}`
const ui = { client_id: 'ui', application_type: 'native', grant_types: ['authorization_code'], response_types: ['code'], redirect_uris: redirects }

const provider = new Provider(issuer, {
  clients: [
    { ...ui, token_endpoint_auth_method: 'none' },
    { ...ui, client_id: 'confidential', client_secret: 'secret-of-the-test-0123456789abcdef', token_endpoint_auth_method: 'client_secret_basic' },
    {
      client_id: 'cli', application_type: 'native', token_endpoint_auth_method: 'none', redirect_uris: [], response_types: [],
      grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
    },
  ],
  claims: { openid: ['sub'], groups: ['groups'] },
  conformIdTokenClaims: false,
  cookies: { keys: ['for-tests-only'] },
  features: { deviceFlow: { enabled: true }, revocation: { enabled: true }, devInteractions: { enabled: true } },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, groups: id.split('+').slice(1) }) }),
  issueRefreshToken: async (_, client) => client.grantTypeAllowed('refresh_token'),
  pkce: { required: () => true },
  ttl: { IdToken: 300, RefreshToken: 3600, DeviceCode: 300, AuthorizationCode: 60, Session: 3600, Interaction: 300, Grant: 3600, AccessToken: 300 },
})

provider.listen(Number(port), '127.0.0.1', () => console.log(`listening on ${issuer}`))
