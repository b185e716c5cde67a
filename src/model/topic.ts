/** What live updates name: the parts of an installation that a page shows, as its queries name them. */
export const TOPICS = ['messages', 'overview', 'inbox', 'accounts', 'domains', 'suppressions', 'audit'] as const;
export type Topic = (typeof TOPICS)[number];
