/** Mandrill (Mailchimp Transactional), https://mailchimp.com/developer/transactional/. */
import type { Provider } from '../provider.ts';
import { MANDRILL_EVENTS } from './events.ts';
import { MANDRILL_RELAY } from './profile.ts';

export const MANDRILL: Provider = {
  name: 'mandrill',
  title: 'Mandrill',
  relay: MANDRILL_RELAY,
  events: MANDRILL_EVENTS,
};
