"""Bugs that other job systems had, as scenarios for this one: what must hold instead.

The keys are those of a collected log of public issue threads; "why not" says where a scenario
cannot arise here.
"""

from tests.conformance.proofs import Proof

EXPIRY = "store/test_expiry.py::"
RACES = "store/test_races.py::"
FENCE = "store/test_fence.py::"
CLAIMS = "store/test_claims.py::"
LATCHES = "store/test_latches.py::"
BIRTHS = "store/test_births.py::"
ODD = "store/test_odd_calls.py::"
PLANS = "store/test_query_plans.py::"
NODE = "decisions/test_node.py::"
WORKER_OUTCOMES = "worker/test_outcomes.py::"
SHUTDOWN = "worker/test_shutdown.py::"
RESTART = "worker/test_postgres_restart.py::"
LOST = "worker/test_lost_leases.py::"
ENDURING = "worker/test_enduring_leases.py::"
SECURITY = "console/test_security.py::"
STREAMS = "console/test_streams.py::"
PARAMETERS = "console/test_parameters.py::"
JOB_PAGE = "console/test_job_page.py::"

PURGE = "store/test_purging.py::"
PURGE_RACES = "store/test_purge_races.py::"
SCHEDULES = "store/test_schedules.py::"
RECURRENCE = "decisions/test_recurrence.py::"

LEASES = (
    Proof("B01", "A sweep writes nothing to a job that was finished or claimed since it looked.",
          (EXPIRY + "test_a_sweep_writes_only_where_claim_and_expiry_are_as_it_read_them",)),
    Proof("B02", "A lapsed job of a type no live node knows goes by its stored policy.",
          (EXPIRY + "test_a_sweep_goes_by_the_stored_policy_also_for_jobs_no_live_node_knows",)),
    Proof("B03", "A handler whose lease was lost is told, and nothing it reports applies.",
          (LOST + "test_a_lost_lease_stops_the_handler_and_its_end_is_never_reported",)),
    Proof("B04", "A sweep reaches the lapsed behind any number of long live leases.",
          (EXPIRY + "test_a_sweep_reaches_what_has_lapsed_behind_any_number_of_long_live_leases",)),
    Proof("B05", "A job of any length runs once while its node beats; its age is no reason to act.",
          (ENDURING + "test_a_job_that_outlives_its_lease_ten_times_over_runs_once",)),
    Proof("B06", "Every lease is renewed each third of it; a slower beat is refused at the start.",
          ("decisions/test_node_renewals.py::test_every_lease_is_renewed_at_the_regular_beat",
           "worker/test_options.py::test_an_option_out_of_its_range_is_refused_by_name")),
    Proof("B07", "A restarted node is another worker: its old leases lapse like anybody's.",
          ("worker/test_upgrades.py::test_nodes_that_come_at_once_upgrade_once_and_all_work",
           SHUTDOWN + "test_the_jobs_of_a_killed_node_finish_on_another_after_the_lease")),
    Proof("B08", "A lease is swept whether or not its node is registered.",
          (EXPIRY + "test_a_lease_is_swept_although_its_node_was_never_registered",)),
    Proof("B09", "A node whose heartbeats fail for three leases tells its handlers and works on.",
          (ENDURING
           + "test_a_node_kept_from_its_file_for_three_leases_gives_up_its_jobs_and_works_on",)),
    Proof("B10", "Of an outcome and a sweep at the same instant exactly one ends the attempt.",
          (RACES + "test_of_an_outcome_and_a_sweep_at_once_exactly_one_ends_the_attempt",)),
    Proof("B11", "Jobs of a claim that commits while the node stops are run or let go, never kept.",
          (NODE + "test_a_stop_during_a_claim_waits_for_its_jobs_and_runs_them",
           NODE + "test_jobs_claimed_too_late_are_let_go_unrun")),
    Proof("B12", "A claim writes state, owner, attempt, lease and log row together.",
          (CLAIMS + "test_a_claim_and_its_log_row_are_one_transaction",)),
    Proof("B13", "Cut connections cost no lease.",
          (RESTART + "test_a_node_goes_on_under_load_and_nothing_is_lost_or_applied_twice",)),
    Proof("B14", "A stale list of lapsed leases writes nothing and runs nothing.",
          (EXPIRY + "test_a_sweep_writes_only_where_claim_and_expiry_are_as_it_read_them",)),
    Proof("B15", "An id that is none is refused at the call, never replaced.",
          (ODD + "test_values_of_the_wrong_kind_get_a_typed_error",)),
    Proof("B16", "Eight claimers never get one job twice.",
          (RACES + "test_eight_claimers_share_the_jobs_without_getting_one_twice",)),
    Proof("B17", "A node killed right after its claim loses nothing: the job runs after the lease.",
          (SHUTDOWN + "test_the_jobs_of_a_killed_node_finish_on_another_after_the_lease",)),
    Proof("B18", "Nobody owns a job before it is due.",
          (CLAIMS + "test_a_claim_takes_due_jobs_by_due_time_then_enqueue_number",)),
    Proof("B19", "A node never claims more than it has free slots, so no claimed job waits.",
          (CLAIMS + "test_a_claim_never_takes_more_than_the_free_slots",
           NODE + "test_never_more_jobs_than_free_slots_are_claimed_over_several_queues")),
    Proof("B20", "An attempt over its timeout is told so and fails with that reason.",
          (WORKER_OUTCOMES + "test_an_attempt_over_its_timeout_fails_when_the_handler_ends",)),
    Proof("B21", "Whatever a heartbeat raises, the beat goes on.",
          (LOST + "test_nothing_that_goes_wrong_in_a_heartbeat_ends_the_heartbeats",)),
    Proof("B22", "A lease holds a microsecond before its expiry and has lapsed at it.",
          (FENCE + "test_a_microsecond_before_expiry_the_lease_still_holds",
           EXPIRY + "test_a_lapsed_lease_with_attempts_left_is_scheduled_again")),
)  # fmt: skip

PROCESSES = (
    Proof("B23", "A stop during the start is not forgotten.",
          (SHUTDOWN + "test_a_stop_before_the_start_is_not_forgotten",
           SHUTDOWN + "test_a_signal_during_the_start_ends_the_process")),
    Proof("B24", "A thread that goes on keeps its slot, and its late return is refused.",
          (NODE + "test_a_lost_lease_keeps_its_slot_until_its_handler_has_ended",
           WORKER_OUTCOMES + "test_a_plain_handler_hears_of_its_timeout")),
    Proof("B25", "A cancel reaches the job in a node's only slot.",
          (ENDURING + "test_a_node_with_its_only_slot_taken_still_delivers_a_cancel",)),
    Proof("B26", "A deploy that lets jobs finish burns no attempt.",
          (SHUTDOWN + "test_after_a_stop_running_jobs_finish_and_nothing_new_is_claimed",),
          "A job let go after the grace time counts its attempt: the contract counts every claim."),
    Proof("B27", "A killed child process is replaced and the others stay.",
          ("worker/test_processes.py::test_a_killed_process_is_replaced_and_the_others_stay",)),
    Proof("B28", "Minters that are stopped or race leave each tick minted once or not at all.",
          (SCHEDULES + "test_two_nodes_never_mint_the_same_tick_twice",
           SCHEDULES
           + "test_a_decision_on_what_was_read_before_another_node_decided_writes_nothing")),
    Proof("B29", "A stopped node's job frees its queue's slot at once.",
          (SHUTDOWN
           + "test_after_the_grace_time_a_heeding_handler_is_let_go_and_runs_again_elsewhere",
           EXPIRY + "test_released_leases_lapse_at_once_and_are_swept")),
    Proof("B30", "A handler that heeds nothing is shown, and does not keep a stopping process.",
          ("store/test_monitor.py::test_what_needs_attention_is_told",
           SHUTDOWN + "test_a_handler_that_ignores_its_token_does_not_keep_the_process")),
    Proof("B31", "A signal at any moment loses nothing that was claimed.",
          (SHUTDOWN + "test_a_signal_drains_the_node_and_the_process_ends_with_code_0",
           NODE + "test_outcomes_are_flushed_before_the_node_stops")),
)  # fmt: skip

DATABASES = (
    Proof("B32", "Transactions that read and then write wait for each other on SQLite.",
          (RACES + "test_transactions_that_read_first_and_then_write_wait_for_each_other",)),
    Proof("B33", "A file that is locked for a while costs no node.",
          (ENDURING
           + "test_a_node_kept_from_its_file_for_three_leases_gives_up_its_jobs_and_works_on",)),
    Proof("B34", "Nobody who watches holds a snapshot of the database open.",
          ("store/test_log_tail.py::test_an_idle_follower_of_sqlite_runs_no_statement",
           STREAMS + "test_a_console_without_viewers_reads_nothing")),
    Proof("B35", "A claim begins as a writer, so it never fails at once.",
          (RACES + "test_transactions_that_read_first_and_then_write_wait_for_each_other",)),
    Proof("B36", "Any mix of writes ends without a deadlock.",
          ("store/test_locking_load.py"
           "::test_a_random_load_ends_without_a_deadlock_and_with_a_clean_audit",)),
    Proof("B37", "Purges and requeues at once: nothing fails, and nothing requeued is purged.",
          (PURGE_RACES + "test_nothing_is_purged_twice_by_two_nodes",
           PURGE_RACES + "test_a_purge_decides_again_once_it_holds_the_rows",
           PURGE_RACES + "test_a_requeue_that_comes_after_the_purge_finds_no_job")),
    Proof("B38", "A claim reads its queue's due jobs by their index, whatever else is stored.",
          (PLANS + "test_no_read_scans_a_big_table",)),
    Proof("B39", "A listener that was cut off comes back; polling covers the time between.",
          (RESTART + "test_hints_come_back_so_an_idle_node_hears_of_work_long_before_its_poll",)),
    Proof("B40", "Hints, and what else a pooler in transaction mode breaks, are never relied on.",
          why_not="No lock outlives its transaction and polling suffices; a run behind such a "
          "pooler is not part of the suite."),
    Proof("B41", "A database that refuses writes for a while is met like one that is away.",
          ("worker/test_faults.py::test_a_node_goes_on_when_claims_fail_for_a_while",)),
    Proof("B42", "Any number of nodes mint a tick once.",
          (SCHEDULES + "test_two_nodes_never_mint_the_same_tick_twice",)),
    Proof("B43", "No action is decided by an earlier reading.",
          ("store/test_cancel.py"
           "::test_of_two_operators_at_once_one_wins_and_the_other_is_told_what_it_met",)),
)  # fmt: skip

TIME = (
    Proof("B44", "Ticks around both switches are those of a written table, in several zones.",
          (RECURRENCE + "test_ticks_are_those_of_the_golden_table_forwards_and_backwards",
           RECURRENCE + "test_a_nightly_schedule_ticks_once_on_every_local_day_of_a_year",
           RECURRENCE + "test_every_half_hour_counts_real_time_through_a_year")),
    Proof("B45", "A clock that jumps ten years mints at most once, in bounded work.",
          (SCHEDULES + "test_a_clock_that_jumps_ten_years_mints_at_most_once",
           RECURRENCE + "test_ten_years_of_outage_of_every_second_are_bounded_work")),
    Proof("B46", "A clock that steps back over a tick mints it once.",
          (SCHEDULES + "test_a_clock_that_steps_back_over_a_tick_mints_it_once",)),
)  # fmt: skip

DATA = (
    Proof("B47", "Payloads are bounded at the call, and a large one is folded on its page.",
          ("jobs/test_bind.py::test_a_payload_of_exactly_65536_bytes_is_fine_and_one_more_is_not",
           JOB_PAGE + "test_a_large_payload_is_folded_with_its_size")),
    Proof("B48", "No list reads a payload, an output or a failure detail.",
          (PLANS + "test_lists_read_no_payload_no_output_and_no_failure_detail",)),
    Proof("B49", "A value with no JSON form, at any depth, is refused at the call.",
          ("jobs/test_bind.py::test_what_has_no_json_form_is_refused",)),
    Proof("B50", "A payload that no longer fits is quarantined and disturbs nothing else.",
          (WORKER_OUTCOMES
           + "test_a_payload_its_type_refuses_is_quarantined_and_the_handler_never_called",)),
    Proof("B51", "A name no database may hold is refused by field, the same on both.",
          (ODD + "test_names_that_no_store_may_hold_are_refused_by_field",
           "store/test_outputs.py::test_names_tags_causes_and_details_survive_any_character")),
)  # fmt: skip

GRAPHS = (
    Proof("B52", "An end settles its children in its own transaction.",
          (LATCHES + "test_every_way_to_end_settles_the_children",
           "boundary/test_boundary_walk.py"
           "::test_two_operations_end_as_one_of_their_two_orders_would")),
    Proof("B53", "A graph is there whole or not at all: no parent runs before its join counts.",
          (BIRTHS + "test_a_graph_enqueued_at_once_is_born_as_if_one_by_one",
           BIRTHS + "test_a_graph_with_one_bad_job_stores_nothing")),
    Proof("B54", "A release is part of the end it follows from; nothing can come between.",
          ("crash_images/test_crash_images.py"
           "::test_what_a_crash_leaves_of_a_file_is_sound_and_legal",)),
    Proof("B55", "Sixteen parents that end at the same instant release their child once.",
          (RACES + "test_sixteen_parents_that_end_at_once_release_their_child_once",)),
    Proof("B56", "A parent stays with its output while a child that waits is stored.",
          (PURGE + "test_a_parent_stays_with_its_output_while_a_descendant_is_stored",
           PURGE + "test_a_child_that_waits_for_another_parent_finds_both")),
    Proof("B57", "An unknown parent, oneself and a cycle are refused.",
          (ODD + "test_an_unknown_parent_and_itself_as_parent_are_refused",
           ODD + "test_a_workflow_that_cannot_be_stored_writes_nothing")),
    Proof("B58", "One failed parent of three has a stated end for the child, in either mode.",
          (LATCHES + "test_the_first_failed_parent_cancels_and_the_other_edges_close",
           LATCHES + "test_an_any_terminal_child_is_released_by_ends_of_every_kind",
           "store/test_monitor.py::test_a_waiting_job_names_the_parents_it_waits_for")),
    Proof("B59", "Of a cancel and a success at the same instant the children follow what stood.",
          (RACES + "test_of_a_cancel_and_a_success_at_once_the_children_follow_the_one_that_stood",
           RACES
           + "test_of_a_cancel_and_a_claim_at_once_a_job_is_cancelled_or_leased_never_both")),
    Proof("B60", "A cancelled branch counts as ended for the join behind it.",
          (LATCHES
           + "test_the_cascade_stops_at_an_any_terminal_child_which_is_released",)),
)  # fmt: skip

OBSERVERS = (
    Proof("B61", "An observer sees the state it is told of or a later one, and every row.",
          ("worker/test_observers.py"
           "::test_an_observer_sees_the_state_it_is_told_of_or_a_later_one",
           "store/test_observer_completeness.py"
           "::test_every_committed_row_is_delivered_in_order_and_nothing_stalls")),
)  # fmt: skip

CONSOLE = (
    Proof("B62", "A write from another origin is refused.",
          (SECURITY + "test_a_write_from_elsewhere_is_refused",),
          "There is no sign-in, so other addresses than this machine's are refused altogether."),
    Proof("B63", "No number and no text in an address ties the console up.",
          (PARAMETERS + "test_a_number_out_of_its_range_is_refused",
           PARAMETERS + "test_a_text_over_its_bound_is_refused",
           PARAMETERS + "test_too_many_parameters_are_refused")),
    Proof("B64", "No session is signed with a default key.",
          why_not="There are no sessions and no cookies."),
    Proof("B65", "Under a prefix every address carries it.",
          ("console/test_pages.py::test_under_a_prefix_every_address_carries_it",)),
    Proof("B66", "The check of a write needs no state of this server.",
          (SECURITY + "test_a_write_with_this_origin_passes_also_behind_a_proxy_that_ends_tls",)),
    Proof("B67", "No address without a permission; none that enqueues.",
          (SECURITY + "test_an_address_without_a_permission_stops_the_start",
           SECURITY + "test_who_has_no_permission_reaches_only_what_is_public")),
    Proof("B68", "More tabs than a browser has connections all load.",
          ("browser/test_log.py::test_more_tabs_than_a_browser_has_connections_all_load",)),
    Proof("B69", "A closed stream frees its slot.",
          (STREAMS + "test_a_closed_stream_frees_its_slot",)),
    Proof("B70", "Every answer forbids storing it.",
          (SECURITY + "test_every_answer_carries_the_security_headers",)),
)  # fmt: skip

SCENARIOS = (
    *LEASES, *PROCESSES, *DATABASES, *TIME, *DATA, *GRAPHS, *OBSERVERS, *CONSOLE,
)  # fmt: skip
