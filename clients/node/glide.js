// Drives valkey-glide.
'use strict'
const fs = require('node:fs')
const path = require('node:path')
const glide = require('@valkey/valkey-glide')
const folder = require.resolve.paths('').map(at => path.join(at, '@valkey/valkey-glide')).find(fs.existsSync)
const { main } = require('./steps.js')

main(async ({ host, port, cluster, resp, tls, login }) => {
  const kind = cluster ? glide.GlideClusterClient : glide.GlideClient
  const protocol = resp ? { protocol: resp === 3 ? glide.ProtocolVersion.RESP3 : glide.ProtocolVersion.RESP2 } : {}
  const secure = tls ? { useTLS: true, advancedConfiguration: { tlsAdvancedConfiguration: { rootCertificates: tls.ca } } } : {}
  const credentials = login.username ? { credentials: login } : {}
  const client = await kind.createClient({ addresses: [{ host, port }], ...protocol, ...secure, ...credentials })
  return {
    version: JSON.parse(fs.readFileSync(path.join(folder, 'package.json'))).version,
    refused: glide.RequestError,
    call: words => client.customCommand(words),
    pipeline (commands) {
      const batch = cluster ? new glide.ClusterBatch(false) : new glide.Batch(false)
      for (const words of commands) batch.customCommand(words)
      return client.exec(batch, true)
    },
    close: () => client.close()
  }
})
