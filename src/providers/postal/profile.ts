/**
 * The relay of Postal. Every installation has its own host name, so only `?provider=postal` selects this profile.
 * Events identify a message by its Message-ID, which Postal does not change. Postal replaces the envelope sender with
 * an address of its return path domain.
 */
import type { RelayProfile } from '../provider.ts';
import { POSTAL_REPLIES } from './replies.ts';

export const POSTAL_RELAY: RelayProfile = {
  hosts: [],
  parameters: [],
  metadata: () => [],
  rewrittenFields: [],
  keepsEnvelopeSender: false,
  maxMessageBytes: null,
  spf: null,
  // The source code of Postal contains no connection limit.
  connections: null,
  messagesPerConnection: null,
  replies: POSTAL_REPLIES,
  findReference: null,
  sources: ['https://docs.postalserver.io/getting-started/dns-configuration', 'https://github.com/postalserver/postal'],
};
