// Drives ioredis and its fork iovalkey: the last argument is the package.
'use strict'
const name = process.argv[6]
const Redis = require(name)
const { main } = require('./steps.js')

main(async ({ host, port, cluster, resp, tls, login }) => {
  const options = { ...(resp ? { protocol: resp } : {}), ...(tls ? { tls } : {}), ...login }
  const client = cluster
    ? new Redis.Cluster([{ host, port }], { redisOptions: options })
    : new Redis({ host, port, ...options })
  client.on('error', () => {}) // told by the calls that fail
  await new Promise((resolve, reject) => {
    client.once('ready', resolve)
    client.once('error', reject)
  })
  return {
    version: require(name + '/package.json').version,
    refused: Redis.ReplyError,
    call: words => client.call(...words),
    async pipeline (commands) {
      const replies = await client.pipeline(commands.map(words => ['call', ...words])).exec()
      return replies.map(([err, reply]) => { if (err) throw err; return reply })
    },
    close: () => client.disconnect()
  }
})
