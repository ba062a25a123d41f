import limitgate from './index.cjs'

export const { limit, limitFastify, limitKoa, limiter, retry, DecisionError } = limitgate
