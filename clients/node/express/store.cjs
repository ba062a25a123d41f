'use strict'
// A store for express-rate-limit: its counters are limits of Limitgate that come with each call,
// so no limits file is needed.

const { sender, addressOf, rethrow, watch, DecisionError } = require('./ask.cjs')

// LimitgateStore keeps windowMs and limit of the middleware as a bucket of limit units that fills
// up within windowMs. A client that has used them up comes back when a unit is there, not at the
// end of a window.
class LimitgateStore {
  // The client is one of ioredis or node-redis. Prefix precedes each key.
  constructor(options = {}) {
    if (typeof options.sendCommand === 'function' || typeof options.call === 'function') throw new TypeError('limitgate: the client belongs in an object: new LimitgateStore({ client })')
    for (const name of Object.keys(options)) {
      if (name !== 'client' && name !== 'prefix') throw new TypeError(`limitgate: there is no option ${name}; the options are client, prefix`)
    }
    const { client, prefix = 'express:' } = options
    if (!client) throw new TypeError('limitgate: give a client of ioredis or node-redis')
    const send = sender(client)
    const at = addressOf(client)
    watch(client)
    this.prefix = prefix
    this.localKeys = false
    this.send = (...words) => send(words).catch((err) => explain(err, at, client))
  }

  // init receives the options of the middleware.
  init(options) {
    const limit = options.limit ?? options.max
    if (options.skipFailedRequests || options.skipSuccessfulRequests) {
      this.mistake = 'a bucket takes nothing back: leave out skipFailedRequests and skipSuccessfulRequests'
    } else if (!Number.isInteger(limit) || limit < 1) {
      this.mistake = `limit is ${typeof limit === 'function' ? 'a function' : limit}, and has to be a whole number from 1: limits that differ belong in a limits file`
    }
    // The middleware logs an error of init and goes on, so requests get it too.
    if (this.mistake) throw new TypeError(`limitgate: ${this.mistake}`)
    this.limit = limit
    this.seconds = Math.max(1, Math.ceil(options.windowMs / 1000))
  }

  async increment(key) {
    if (this.mistake) throw new TypeError(`limitgate: ${this.mistake}`)
    const [limited, , remaining, retryAfter, resetAfter] = (await this.send('CL.THROTTLE', this.prefix + key, String(this.limit - 1), String(this.limit), String(this.seconds))).map(Number)
    return {
      totalHits: limited ? this.limit + 1 : this.limit - remaining,
      resetTime: new Date(Date.now() + 1000 * (limited ? retryAfter : resetAfter)),
    }
  }

  // decrement is called for requests that are not to count, which init refuses.
  async decrement() {}

  async resetKey(key) {
    await this.send('DEL', this.prefix + key)
  }
}

// explain rejects with what failed, and with the option of express-rate-limit that decides then.
function explain(err, at, client) {
  try {
    rethrow(err, at, client)
  } catch (told) {
    if (!(told instanceof DecisionError)) told.message += '; passOnStoreError: true admits requests meanwhile'
    throw told
  }
}

module.exports = { LimitgateStore }
