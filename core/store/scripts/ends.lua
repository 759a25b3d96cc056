-- What is remembered of a partition's audit, as of one moment. KEYS: 1 audit, 2 audit head.
-- Returns {digest of the newest event that was trimmed, digest of the newest one, its id}; '' for what there is none of.
local head = redis.call('HMGET', KEYS[2], 'link', 'digest')
local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
return {head[1] or '', head[2] or '', newest[1] and newest[1][1] or ''}
