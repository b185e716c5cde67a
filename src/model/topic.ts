/** The topics of live updates. They are also the names of the dashboard's queries. */
export const TOPICS = ['messages', 'overview', 'inbox', 'accounts', 'domains', 'suppressions', 'audit'] as const;
export type Topic = (typeof TOPICS)[number];
