import store from './store.cjs'

export const { LimitgateStore } = store
