/** The topics of live updates. The queries of the dashboard have the same names. */
export const TOPICS = [
  'messages',
  'overview',
  'inbox',
  'accounts',
  'domains',
  'suppressions',
  'webhooks',
  'feedback',
  'tokens',
  'audit',
] as const;
export type Topic = (typeof TOPICS)[number];
